"""The network of a lab: a public segment, private networks behind NAT routers, and nothing beyond.

Everything is in network namespaces whose names start with `rce-` and the lab's name; this machine's own network is
never touched, and no namespace has a route out of the lab. Hosts plug themselves into the bridges when they boot
(`hosts.py`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

from lab import topology
from lab.errors import LabError
from lab.topology import Router, Topology

NETNS = Path("/run/netns")

_FIREWALL = """\
table inet router {{
  chain input {{
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    ct state established,related accept
    iifname "lan" accept
  }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
    iifname "lan" oifname "wan" accept
    # What the owner of this network agreed to: the bootstrap may log in.
    iifname "wan" ip saddr {bootstrap} ip daddr {inside} tcp dport 22 accept
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "wan" ct state new masquerade
  }}
}}
"""

_CLOSED = """\
table ip aws {
  chain forward {
    type filter hook forward priority filter; policy drop;
  }
}
"""


def path(namespace: str) -> Path:
    """The file that stands for a network namespace."""
    return NETNS / namespace


def namespaces_of(lab: str) -> list[str]:
    """The network namespaces of a lab that there are, or whose files were left over."""
    if not NETNS.is_dir():
        return []
    return sorted(entry.name for entry in NETNS.iterdir() if topology.is_namespace_of(lab, entry.name))


def create_segments(lab: Topology) -> None:
    """Makes the public segment, the operator's and the mirror's places on it."""
    world = topology.world_namespace(lab.name)
    _add_namespace(world)
    _add_bridge(world, topology.PUBLIC_BRIDGE)
    for namespace, port, address in (
        (topology.operator_namespace(lab.name), "operator", topology.OPERATOR_ADDRESS),
        (topology.mirror_namespace(lab.name), "mirror", topology.MIRROR_ADDRESS),
    ):
        _add_namespace(namespace)
        _plug(world, topology.PUBLIC_BRIDGE, port, namespace=namespace, device="public", address=address)


def create_aws(lab: str) -> None:
    """Makes the network of the AWS world, and the router to the public segment, which lets nothing through yet."""
    world, router = topology.world_namespace(lab), topology.aws_namespace(lab)
    _add_bridge(world, topology.VPC_BRIDGE)
    _add_namespace(router)
    _plug(
        world,
        topology.PUBLIC_BRIDGE,
        "aws-wan",
        namespace=router,
        device="wan",
        address=topology.AWS_ROUTER_ADDRESS,
    )
    _plug(world, topology.VPC_BRIDGE, "aws-vpc", namespace=router, device="vpc", address="169.254.0.1")
    run_in(router, "nft", "-f", "-", stdin=_CLOSED)
    # An instance that is told of a shorter way to another one would go round the router.
    settings = "echo 0 >conf/all/send_redirects && echo 0 >conf/vpc/send_redirects && echo 1 >ip_forward"
    run_in(router, "sh", "-c", f"cd /proc/sys/net/ipv4 && {settings}")


def set_routes(namespace: str, device: str, old: Set[str], new: Set[str]) -> None:
    """Has networks be reached directly through a device, and those no longer named not."""
    _ip(namespace, *(f"route delete {each} dev {device}" for each in sorted(old - new)),
        *(f"route replace {each} dev {device}" for each in sorted(new - old)))  # fmt: skip


def set_addresses(namespace: str, device: str, old: Set[str], new: Set[str]) -> None:
    """Has a device answer for addresses, and for those no longer named not."""
    _ip(namespace, *(f"address delete {each}/32 dev {device}" for each in sorted(old - new)),
        *(f"address replace {each}/32 dev {device}" for each in sorted(new - old)))  # fmt: skip


def create_router(lab: str, router: Router) -> None:
    """Makes one private network and the NAT router between it and the public segment."""
    world = topology.world_namespace(lab)
    namespace = topology.router_namespace(lab, router.number)
    _add_bridge(world, router.lan_bridge)
    _add_namespace(namespace)
    _plug(
        world,
        topology.PUBLIC_BRIDGE,
        f"wan-{router.number}",
        namespace=namespace,
        device="wan",
        address=router.public_address,
    )
    _plug(
        world,
        router.lan_bridge,
        f"router-{router.number}",
        namespace=namespace,
        device="lan",
        address=router.lan_address,
    )
    rules = _FIREWALL.format(bootstrap=topology.BOOTSTRAP_ADDRESS, inside=router.inside)
    run_in(namespace, "nft", "-f", "-", stdin=rules)
    # Written through a shell of that namespace: the file shows the writer's own network.
    run_in(namespace, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")


def destroy_router(lab: str, router: Router) -> None:
    """Removes one private network, as far as it was made."""
    _remove_namespace(topology.router_namespace(lab, router.number))
    with suppress(LabError):
        _ip(topology.world_namespace(lab), f"link delete {router.lan_bridge}")


def destroy(lab: str) -> None:
    """Removes every network namespace of a lab, and with them all that is in them. Its processes must be gone."""
    for namespace in namespaces_of(lab):
        _remove_namespace(namespace)


def port_of(lab: str, host: str) -> str:
    """The device on this side of a host's cable, in the lab's world namespace.

    systemd-nspawn cuts the name to what Linux allows, and adds the whole name as an alternative one.
    """
    return f"vb-{topology.machine_name(lab, host)}"


def set_link(lab: str, host: str, *, up: bool) -> None:
    """Plugs a host's cable in or out; with it out, the host sees no carrier.

    Raises:
        LabError: the host has no cable, as it is not running.
    """
    _ip(topology.world_namespace(lab), f"link set dev {port_of(lab, host)} {'up' if up else 'down'}")


def remove_port(lab: str, host: str) -> None:
    """Removes what a host that was switched off may have left of its cable."""
    with suppress(LabError):
        _ip(topology.world_namespace(lab), f"link delete dev {port_of(lab, host)}")


def run_in(namespace: str, *argv: str, stdin: str = "") -> str:
    """Runs a command of this machine in a network namespace.

    Returns:
        What it printed.

    Raises:
        LabError: it failed.
    """
    done = subprocess.run(
        ["nsenter", f"--net={path(namespace)}", *argv], input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(f"`{' '.join(argv)}` failed in the network namespace {namespace}: {done.stderr.strip()}")
    return done.stdout


def _ip(namespace: str, *commands: str) -> None:
    run_in(namespace, "ip", "-batch", "-", stdin="\n".join(commands) + "\n")


def _add_namespace(namespace: str) -> None:
    NETNS.mkdir(parents=True, exist_ok=True)
    path(namespace).touch(exist_ok=False)
    subprocess.run(["unshare", f"--net={path(namespace)}", "true"], check=True)
    # Addresses derived from MAC addresses would only add noise: the lab speaks IPv4.
    run_in(namespace, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
    _ip(namespace, "link set lo up")


def _remove_namespace(namespace: str) -> None:
    subprocess.run(["umount", "--lazy", str(path(namespace))], check=False, capture_output=True)
    path(namespace).unlink(missing_ok=True)


def _add_bridge(world: str, bridge: str) -> None:
    _ip(world, f"link add {bridge} type bridge", f"link set {bridge} up")


def _plug(world: str, bridge: str, port: str, *, namespace: str, device: str, address: str) -> None:
    _ip(
        world,
        f"link add {port} type veth peer name {device} netns {namespace}",
        f"link set {port} master {bridge} up",
    )
    _ip(namespace, f"address add {address}/24 dev {device}", f"link set {device} up")
