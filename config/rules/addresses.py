"""Addresses on the overlay and off it, devices and ports."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

from config.defaults import PINNED_PORTS
from config.faults import Fault
from config.models import Bastion, Bootstrap, Cluster, Overlay, RayHost
from config.reach import endpoint, way_in
from config.rules.hosts import keyed_bootstraps, keyed_hosts, keyed_nodes

_ADD_OVERLAY = "add `overlay: {}`, or remove it"


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with addresses, devices and ports."""
    if cluster.overlay is None:
        yield from _direct(cluster)
    else:
        yield from _with_overlay(cluster, cluster.overlay)
        yield from _range(cluster.overlay.cidr)
        yield from _overlay_addresses(cluster, cluster.overlay.cidr)
        yield from _not_in_the_overlays_range(cluster, cluster.overlay.cidr)
        yield from _listeners(cluster, cluster.overlay)
    yield from _ports(cluster)
    yield from _public_addresses(cluster)
    yield from _one_entry_per_machine(cluster)


def _with_overlay(cluster: Cluster, overlay: Overlay) -> Iterator[Fault]:
    if not cluster.bootstraps:
        yield Fault("cluster.bootstrap", None, "an overlay needs a host at which all others join", "add it")
    if cluster.device is not None:
        rule = f"with an overlay, nodes reach each other over its device, {overlay.device}"
        yield Fault("cluster.device", cluster.device, rule, "remove it, or set cluster.overlay.device")
    for key, node in keyed_nodes(cluster):
        for name, value in (("address", node.address), ("device", node.device)):
            if value is not None:
                rule = "with an overlay, nodes reach each other on it alone"
                yield Fault(f"{key}.{name}", value, rule, "remove it, or remove cluster.overlay for direct mode")


def _direct(cluster: Cluster) -> Iterator[Fault]:
    for key, _ in keyed_bootstraps(cluster):
        rule = "a bootstrap is where hosts join the overlay, and there is none (direct mode)"
        yield Fault(key, None, rule, _ADD_OVERLAY)
    first: dict[str, str] = {}
    for key, node in keyed_nodes(cluster):
        if node.overlay_ip is not None:
            yield Fault(f"{key}.overlay_ip", str(node.overlay_ip), "there is no overlay (direct mode)", _ADD_OVERLAY)
        if node.public_address is not None:
            rule = "there is no overlay (direct mode)"
            yield Fault(f"{key}.public_address", node.public_address, rule, f"write it as address, {_ADD_OVERLAY}")
        if node.device is None and cluster.device is None:
            rule = "in direct mode (no cluster.overlay), RLinf needs the network device of every node"
            fix = "add it, or cluster.device for all; `ip -brief address` shows it. For an overlay, add `overlay: {}`"
            yield Fault(f"{key}.device", None, rule, fix)
        yield from _direct_address(key, node, first)


def _direct_address(key: str, node: RayHost, first: dict[str, str]) -> Iterator[Fault]:
    name, text = ("ssh.address", node.ssh.address) if node.address is None else ("address", node.address)
    if text is None and node.join is None:
        return  # a fault of its own
    try:
        address = ip_address(text or "")
    except ValueError:
        rule = "in direct mode (no cluster.overlay), Ray needs the IP address at which the other nodes reach this one"
        yield Fault(f"{key}.address", text, rule, "add address with that IP address")
        return
    if address.version != 4 or address.is_loopback or address.is_unspecified:
        rule = "must be an IPv4 address at which the other nodes reach this one"
        yield Fault(f"{key}.{name}", text, rule, "add address with that IP address")
    elif str(address) in first:
        rule = f"every node has an address of its own; {first[str(address)]} has this one"
        yield Fault(f"{key}.{name}", text, rule, "correct one of the two")
    first.setdefault(str(address), node.name)


def _overlay_addresses(cluster: Cluster, cidr: IPv4Network) -> Iterator[Fault]:
    used = {host.overlay_ip for host in cluster.hosts}
    free = next((str(ip) for ip in cidr.hosts() if ip not in used), "one of a larger cluster.overlay.cidr")
    fix = f"take a free address, such as {free}"
    first: dict[IPv4Address, str] = {}
    for key, host in keyed_hosts(cluster):
        ip = host.overlay_ip
        if ip is None:
            rule = "every host has a fixed address in the overlay"
            yield Fault(f"{key}.overlay_ip", None, rule, f"add it, such as {free}")
            continue
        if ip not in cidr:
            yield Fault(f"{key}.overlay_ip", str(ip), f"must be in cluster.overlay.cidr, {cidr}", fix)
        elif ip in (cidr.network_address, cidr.broadcast_address):
            rule = f"must not be the network or broadcast address of {cidr}"
            yield Fault(f"{key}.overlay_ip", str(ip), rule, fix)
        if ip in first:
            rule = f"every host has an overlay address of its own; {first[ip]} has this one"
            yield Fault(f"{key}.overlay_ip", str(ip), rule, fix)
        first.setdefault(ip, host.name)


def _not_in_the_overlays_range(cluster: Cluster, cidr: IPv4Network) -> Iterator[Fault]:
    """A LAN inside the overlay's range makes two routes."""
    for key, host in keyed_hosts(cluster):
        jump = host.ssh.jump
        for name, text in (
            ("ssh.address", host.ssh.address),
            ("ssh.jump.address", jump.address if isinstance(jump, Bastion) else None),
            ("public_address", host.public_address),
        ):
            if text is not None and (address := _address(text)) is not None and address in cidr:
                rule = f"a host's own address must not be in the overlay's range, {cidr}"
                yield Fault(f"{key}.{name}", text, rule, "choose another range as cluster.overlay.cidr")
        if isinstance(host, RayHost):
            yield from _robots(key, host, cidr)


def _robots(key: str, host: RayHost, cidr: IPv4Network) -> Iterator[Fault]:
    for index, robot in enumerate(host.hardware):
        for name, value in robot:
            if name.endswith(("robot_ip", "robot_url")) and value is not None:
                address = _address(str(value))
                if address is not None and address in cidr:
                    rule = f"a robot's address must not be in the overlay's range, {cidr}: its host would look there"
                    fix = "choose another range as cluster.overlay.cidr"
                    yield Fault(f"{key}.hardware[{index}].{name}", str(value), rule, fix)


def _ports(cluster: Cluster) -> Iterator[Fault]:
    """Everything that listens on a host has a port of its own."""
    given = {"cluster.ray.port": cluster.ray.port}
    if cluster.overlay is not None:
        given["cluster.overlay.port"] = cluster.overlay.port
        if cluster.ray.port == cluster.overlay.port:
            rule = "Ray and EasyTier need a port each"
            yield Fault("cluster.ray.port", str(cluster.ray.port), rule, "choose another port for one of them")
    for key, port in given.items():
        for what, ports in PINNED_PORTS.items():
            if port in ports:
                rule = f"{what} listens at {ports[0]}" + (f" to {ports[-1]}" if len(ports) > 1 else "")
                yield Fault(key, str(port), f"{rule} on every host", "choose another port")


def _range(cidr: IPv4Network) -> Iterator[Fault]:
    if cidr.prefixlen > 30:
        rule = "must hold at least two hosts; EasyTier would take /32 for /24"
        yield Fault("cluster.overlay.cidr", str(cidr), rule, "write a larger range, such as 10.10.0.0/24")
    elif cidr.is_loopback or cidr.is_multicast or cidr.is_link_local or cidr.overlaps(IPv4Network("0.0.0.0/8")):
        rule = "must be a range that hosts can have addresses in"
        yield Fault("cluster.overlay.cidr", str(cidr), rule, "write a private range, such as 10.10.0.0/24")


def _listeners(cluster: Cluster, overlay: Overlay) -> Iterator[Fault]:
    """Where hosts connect to, each a machine of its own."""
    first: dict[str, str] = {}
    for key, host in keyed_hosts(cluster):
        is_bootstrap = isinstance(host, Bootstrap)
        if is_bootstrap and host.ssh.jump is not None and host.public_address is None:
            rule = "a bootstrap reached through a jump host does not show where the others reach it"
            yield Fault(f"{key}.public_address", None, rule, "add its public address")
        address = host.public_address or (host.ssh.address if is_bootstrap else None)
        if address is None:
            continue
        if address in first:
            listener = endpoint(address, overlay.port)
            rule = f"every host listens at an endpoint of its own; {first[address]} listens at {listener}"
            name = "public_address" if host.public_address else "ssh.address"
            yield Fault(f"{key}.{name}", address, rule, "correct the address of one")
        first.setdefault(address, host.name)


def _public_addresses(cluster: Cluster) -> Iterator[Fault]:
    for key, host in keyed_hosts(cluster):
        address = host.public_address
        name, fix = "public_address", "write the host's public address, or leave it out"
        if address is None and isinstance(host, Bootstrap):
            address, name, fix = host.ssh.address, "ssh.address", "add public_address: where the others reach it"
        if address is None:
            continue
        parsed = _any_address(address)
        if address == "localhost" or (parsed is not None and _reached_by_none(parsed)):
            yield Fault(f"{key}.{name}", address, "must be an address at which other hosts reach this one", fix)
        elif parsed is not None and parsed.version == 6 and _without_ipv6(cluster):
            rule = "is an IPv6 address, and cluster.overlay.flags.enable_ipv6 is false"
            yield Fault(f"{key}.{name}", address, rule, "remove the flag, or write an IPv4 address")


def _reached_by_none(address: IPv4Address | IPv6Address) -> bool:
    # A link-local address has a zone that is only this machine's.
    return address.is_loopback or address.is_unspecified or (address.version == 6 and address.is_link_local)


def _without_ipv6(cluster: Cluster) -> bool:
    return cluster.overlay is not None and cluster.overlay.flags.enable_ipv6 is False


def _one_entry_per_machine(cluster: Cluster) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for key, host in keyed_hosts(cluster):
        way = way_in(cluster, host)
        if way is None:
            continue
        machine = way.endpoint
        if machine in first:
            rule = f"one entry per machine; {first[machine]} is reached at the same address and port"
            yield Fault(f"{key}.ssh.address", host.ssh.address, rule, "correct the address or the port of one")
        first.setdefault(machine, host.name)


def _address(text: str) -> IPv4Address | None:
    address = _any_address(text)
    return address if isinstance(address, IPv4Address) else None


def _any_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
