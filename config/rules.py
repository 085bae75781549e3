"""The rules that need more than one field: names, addresses, jumps, groups.

Pure: settings in, faults out. The rules of RLinf's parser that are checked here are those of RLinf 0.3.0.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address

from config.faults import Fault, shown
from config.models import Bootstrap, Cluster, RayHost

_RESERVED_GROUPS = ("cluster", "node")
_SHORTEST_SECRET = 16
_LONGEST_SECRET = 128


def faults_of(cluster: Cluster) -> list[Fault]:
    """Everything wrong with settings whose single fields are right."""
    return [
        *_names(cluster),
        *_overlay_addresses(cluster),
        *_own_addresses(cluster),
        *_host_keys(cluster),
        *_jumps(cluster),
        *_groups(cluster),
        *_ray(cluster),
    ]


def faults_of_secret(secret: str | None) -> list[Fault]:
    """What is wrong with the network secret; its value is never repeated."""
    fix = 'pulumi config set --secret networkSecret "$(openssl rand -base64 32)"'
    if secret is None:
        return [Fault("networkSecret", None, "the overlay needs a network secret", fix)]
    if not _SHORTEST_SECRET <= len(secret) <= _LONGEST_SECRET:
        rule = f"must have {_SHORTEST_SECRET} to {_LONGEST_SECRET} characters; it has {len(secret)}"
        return [Fault("networkSecret", None, rule, fix)]
    if not (secret.isascii() and secret.isprintable()):
        return [Fault("networkSecret", None, "must be printable ASCII on one line", fix)]
    return []


def _keyed_hosts(cluster: Cluster) -> Iterator[tuple[str, Bootstrap | RayHost]]:
    yield "cluster.bootstrap", cluster.bootstrap
    for index, node in enumerate(cluster.cloud):
        yield f"cluster.cloud[{index}]", node
    for index, edge in enumerate(cluster.edges):
        yield f"cluster.edges[{index}]", edge


def _names(cluster: Cluster) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for key, host in _keyed_hosts(cluster):
        if host.name in first:
            rule = f"every host has a name of its own; {first[host.name]} has this one"
            yield Fault(f"{key}.name", host.name, rule, "rename one of the two")
        first.setdefault(host.name, key)


def _overlay_addresses(cluster: Cluster) -> Iterator[Fault]:
    cidr = cluster.overlay.cidr
    used = {host.overlay_ip for host in cluster.hosts}
    free = next((str(ip) for ip in cidr.hosts() if ip not in used), "one of a larger cluster.overlay.cidr")
    fix = f"take a free address, such as {free}"
    first: dict[IPv4Address, str] = {}
    for key, host in _keyed_hosts(cluster):
        ip = host.overlay_ip
        if ip not in cidr:
            yield Fault(f"{key}.overlay_ip", str(ip), f"must be in cluster.overlay.cidr, {cidr}", fix)
        elif ip in (cidr.network_address, cidr.broadcast_address):
            rule = f"must not be the network or broadcast address of {cidr}"
            yield Fault(f"{key}.overlay_ip", str(ip), rule, fix)
        if ip in first:
            rule = f"every host has an overlay address of its own; {first[ip]} has this one"
            yield Fault(f"{key}.overlay_ip", str(ip), rule, fix)
        first.setdefault(ip, host.name)


def _own_addresses(cluster: Cluster) -> Iterator[Fault]:
    """A LAN inside the overlay's range makes two routes; the same endpoint twice is one host twice."""
    first: dict[tuple[str, int, str | None], str] = {}
    for key, host in _keyed_hosts(cluster):
        for name, text in (("ssh.address", host.ssh.address), ("public_address", host.public_address)):
            if text is None:
                continue
            try:
                address = ip_address(text)
            except ValueError:
                continue
            if address in cluster.overlay.cidr:
                rule = f"a host's own address must not be in the overlay's range, {cluster.overlay.cidr}"
                yield Fault(f"{key}.{name}", text, rule, "choose another range as cluster.overlay.cidr")
            elif name == "public_address" and (address.is_loopback or address.is_unspecified):
                rule = "must be an address at which other hosts reach this one"
                yield Fault(f"{key}.{name}", text, rule, "write the host's public address, or leave it out")
        endpoint = (host.ssh.address, host.ssh.port or cluster.ssh.port, host.ssh.jump)
        if endpoint in first:
            rule = f"one entry per machine; {first[endpoint]} is reached at the same address and port"
            yield Fault(f"{key}.ssh.address", host.ssh.address, rule, "correct the address or the port of one")
        first.setdefault(endpoint, host.name)
    bootstrap = cluster.bootstrap
    if bootstrap.ssh.jump is not None and bootstrap.public_address is None:
        rule = "a bootstrap reached through a jump host does not show where the others reach it"
        yield Fault("cluster.bootstrap.public_address", None, rule, "add its public address")


def _host_keys(cluster: Cluster) -> Iterator[Fault]:
    for key, host in _keyed_hosts(cluster):
        text = host.ssh.host_key
        if text is not None and not _is_public_key(text):
            rule = "must be a public key as in known_hosts, without the address: `ssh-ed25519 AAAA...`"
            fix = f"print it with: ssh-keyscan -t ed25519 {shown(host.ssh.address)}, and compare it on the host"
            yield Fault(f"{key}.ssh.host_key", shown(text), rule, fix)


def _is_public_key(text: str) -> bool:
    kind, _, rest = text.partition(" ")
    blob = rest.partition(" ")[0]
    try:
        decoded = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        return False
    size = int.from_bytes(decoded[:4], "big")
    return bool(kind) and decoded[4 : 4 + size] == kind.encode()


def _jumps(cluster: Cluster) -> Iterator[Fault]:
    by_name = {host.name: host for host in cluster.hosts}
    for key, host in _keyed_hosts(cluster):
        jump = host.ssh.jump
        if jump is None:
            continue
        others = ", ".join(sorted(name for name in by_name if name != host.name))
        if jump not in by_name or jump == host.name:
            rule = "must name another host of this cluster"
            yield Fault(f"{key}.ssh.jump", jump, rule, f"write one of: {others}")
        elif by_name[jump].ssh.jump is not None:
            rule = f"a jump host is reached directly; {jump} itself is reached through {by_name[jump].ssh.jump}"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through a host that has no jump of its own")


def _groups(cluster: Cluster) -> Iterator[Fault]:
    labels = {node.group for node in cluster.nodes}
    for key, host in _keyed_hosts(cluster):
        if isinstance(host, RayHost) and host.group in _RESERVED_GROUPS:
            yield Fault(f"{key}.group", host.group, "this label is RLinf's own", "choose another label")
    for component, where in cluster.rlinf.component_placement.items():
        if where.node_group not in labels:
            key = f"cluster.rlinf.component_placement.{component}.node_group"
            fix = "write one of: " + ", ".join(sorted(labels))
            yield Fault(key, where.node_group, "must be the group of at least one host", fix)


def _ray(cluster: Cluster) -> Iterator[Fault]:
    ray = cluster.ray
    if ray.index_url is not None and ray.find_links is not None:
        rule = "wheels come from an index or from a page of wheels, not from both"
        yield Fault("cluster.ray.find_links", ray.find_links, rule, "remove cluster.ray.index_url or this key")
    if ray.port == cluster.overlay.port:
        rule = "Ray and EasyTier need a port each"
        yield Fault("cluster.ray.port", str(ray.port), rule, "choose another port for one of them")
