"""IPv6 on the public segment of a lab that is up: documentation addresses (RFC 3849) beside those of IPv4.

Until the hosts' next boot. Edges, behind their routers, stay with IPv4.
"""

from __future__ import annotations

from lab import hosts, network, topology
from lab.world import Lab

PREFIX = "2001:db8::"

# Without `nodad`, an address can't be used for its first second.
_SCRIPT = """
set -e
echo 0 >"/proc/sys/net/ipv6/conf/$1/disable_ipv6"
ip -6 address replace "$2/64" dev "$1" nodad
"""


def enable(lab: Lab) -> dict[str, str]:
    """Gives the operator and every host of the public segment an address.

    Returns:
        Name of each host to its address.

    Raises:
        LabError: a host is not running, or refuses.
    """
    network.run_in(topology.operator_namespace(lab.name), "sh", "-c", _SCRIPT, "sh", "public", f"{PREFIX}100")
    addresses: dict[str, str] = {}
    for host in lab.state().topology.hosts:
        if host.bridge == topology.PUBLIC_BRIDGE:
            addresses[host.name] = f"{PREFIX}{host.address.rpartition('.')[2]}"
            hosts.must(lab.name, host.name, "sh", "-c", _SCRIPT, "sh", "host0", addresses[host.name])
    return addresses
