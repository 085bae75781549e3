"""What a lab consists of: its hosts, routers, segments and addresses.

Pure: it computes names and addresses and touches nothing. Every lab has the same addresses; network namespaces
keep labs apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from lab.errors import LabError

PUBLIC_PREFIX = "203.0.113"
"""First three octets of the public segment (a /24 for documentation, RFC 5737)."""

BOOTSTRAP_ADDRESS = f"{PUBLIC_PREFIX}.5"
MIRROR_ADDRESS = f"{PUBLIC_PREFIX}.80"
OPERATOR_ADDRESS = f"{PUBLIC_PREFIX}.100"
PUBLIC_BRIDGE = "public"

AWS_ROUTER_ADDRESS = f"{PUBLIC_PREFIX}.99"
"""The router of the AWS world, on the public segment."""
AWS_ADDRESSES = tuple(f"{PUBLIC_PREFIX}.{number}" for number in (*range(60, 80), *range(81, 99)))
"""The public addresses that the AWS world gives away."""
AWS_PORT = 4566
"""Where the AWS account answers, on the operator's own 127.0.0.1."""
VPC_BRIDGE = "vpc"

MAX_CLOUDS = 50
"""Cloud nodes have .10 and up on the public segment; the mirror is at .80."""
MAX_EDGES = 150
"""The routers of edges have .101 and up on the public segment."""

OPERATOR = "operator"
"""The operator's workstation: not a booted host but a network namespace in which commands of this machine run."""

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")
_RESERVED = re.compile(r"-(op|mirror|aws|nat-[0-9]+)$")

Role = Literal["bootstrap", "cloud", "edge"]

Kind = Literal["systemd", "container", "container-no-cap", "container-no-tun"]
"""How a host runs: booted by systemd; or without it, as in a container of the guide's (`docker run --cap-add NET_ADMIN
--cap-add NET_RAW --device /dev/net/tun`); or in one that was started without NET_ADMIN, or without the device."""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class LabHost:
    """One host.

    Attributes:
        name: its host name, unique in the lab.
        address: IPv4 address on its segment, a /24.
        bridge: the segment it is plugged into.
        gateway: its default gateway, None where it has no default route.
        overlay_ip: the address the printed inventory gives it on the overlay.
        jump: the host through which the operator reaches it, None where that is direct.
        kind: how it runs.
    """

    name: str
    role: Role
    address: str
    bridge: str
    gateway: str | None
    overlay_ip: str
    jump: str | None
    kind: Kind = "systemd"


@dataclass(frozen=True)
class Router:
    """The NAT router of one edge's network.

    Attributes:
        number: of the edge, from 1.
        lan_bridge: the segment on its inner side.
        inside: whose sshd the bootstrap may reach, the only thing let in unsolicited.
    """

    number: int
    public_address: str
    lan_address: str
    lan_network: str
    lan_bridge: str
    inside: str


@dataclass(frozen=True)
class Topology:
    """A lab of a bootstrap, cloud nodes and edges behind one NAT router each.

    Attributes:
        name: of the lab.
        clouds: number of cloud nodes, from 1.
        edges: number of edges, from 0.
        kinds: name of an edge → how it runs; those that are not named are booted by systemd.
    """

    name: str
    clouds: int
    edges: int
    kinds: Mapping[str, Kind] = field(default_factory=dict[str, Kind])

    def __post_init__(self) -> None:
        """Checks name, counts and kinds.

        Raises:
            LabError: one of them is out of its range.
        """
        check_name(self.name)
        if not 1 <= self.clouds <= MAX_CLOUDS:
            raise LabError(f"--clouds {self.clouds}: a lab has 1 to {MAX_CLOUDS} cloud nodes")
        if not 0 <= self.edges <= MAX_EDGES:
            raise LabError(f"--edges {self.edges}: a lab has 0 to {MAX_EDGES} edges")
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                raise LabError(f"--edge-kind {name}={kind}: a kind of host is one of {', '.join(KINDS)}")
            if name not in {_edge(number).name for number in range(1, self.edges + 1)}:
                raise LabError(f"--edge-kind {name}={kind}: the lab has no edge of that name, only {self.edges} edges")

    @property
    def hosts(self) -> tuple[LabHost, ...]:
        """Every host: the bootstrap, the cloud nodes, the edges."""
        return (
            LabHost("bootstrap", "bootstrap", BOOTSTRAP_ADDRESS, PUBLIC_BRIDGE, None, "10.10.0.1", None),
            *(_cloud(number) for number in range(1, self.clouds + 1)),
            *(self._edge(number) for number in range(1, self.edges + 1)),
        )

    @property
    def routers(self) -> tuple[Router, ...]:
        """The NAT router of each edge."""
        return tuple(_router(number) for number in range(1, self.edges + 1))

    @property
    def shape(self) -> str:
        """The numbers of hosts, for people: `1 cloud node and 2 edges`."""
        clouds = f"{self.clouds} cloud node{'s' if self.clouds != 1 else ''}"
        edges = f"{self.edges} edge{'s' if self.edges != 1 else ''}"
        return f"{clouds} and {edges}"

    def _edge(self, number: int) -> LabHost:
        edge = _edge(number)
        return replace(edge, kind=self.kinds.get(edge.name, "systemd"))

    def host(self, name: str) -> LabHost:
        """Finds a host.

        Raises:
            LabError: there is none of that name; the message lists those there are.
        """
        return find(self.hosts, name)


def find(hosts: Sequence[LabHost], name: str) -> LabHost:
    """Finds a host by its name.

    Raises:
        LabError: there is none of that name; the message lists those there are.
    """
    for host in hosts:
        if host.name == name:
            return host
    raise LabError(f"no host is called {name}; the hosts are {', '.join(host.name for host in hosts)}")


def check_name(name: str) -> None:
    """Checks the name of a lab, which becomes part of namespace, machine and device names.

    Raises:
        LabError: it is no such name.
    """
    if not _NAME.fullmatch(name) or "--" in name:
        raise LabError(
            f"--name {name}: a lab's name has up to 20 lower-case letters, digits and single hyphens, starts with "
            "a letter and does not end with a hyphen"
        )
    if _RESERVED.search(name):
        raise LabError(
            f"--name {name}: a name ending in -op, -mirror, -aws or -nat-NUMBER would be taken for a part of a lab"
        )


def world_namespace(lab: str) -> str:
    """The namespace that holds the segments (bridges) of a lab; it has no address itself."""
    return f"rce-{lab}"


def operator_namespace(lab: str) -> str:
    """The namespace in which the operator's commands run."""
    return f"rce-{lab}-op"


def mirror_namespace(lab: str) -> str:
    """The namespace of the HTTP mirror."""
    return f"rce-{lab}-mirror"


def aws_namespace(lab: str) -> str:
    """The namespace of the router between the public segment and the instances of the AWS world."""
    return f"rce-{lab}-aws"


def aws_host(name: str, private_address: str) -> LabHost:
    """An instance of the AWS world as a host. It is on no overlay of the inventory's."""
    return LabHost(name, "cloud", private_address, VPC_BRIDGE, None, "", None)


def router_namespace(lab: str, number: int) -> str:
    """The namespace of the NAT router of one edge, by the number of the edge."""
    return f"rce-{lab}-nat-{number}"


def is_namespace_of(lab: str, namespace: str) -> bool:
    """Whether a network namespace belongs to a lab, told by its name."""
    return re.fullmatch(rf"rce-{re.escape(lab)}(-op|-mirror|-aws|-nat-[0-9]+)?", namespace) is not None


def machine_name(lab: str, host: str) -> str:
    """The name of a host for this machine, where several labs have hosts of the same name."""
    return f"{lab}-{host}"


def _cloud(number: int) -> LabHost:
    # The guide gives the first cloud node 10.10.0.10 and the edges .11 and up; further cloud nodes come after them.
    overlay_ip = "10.10.0.10" if number == 1 else f"10.10.0.{200 + number}"
    return LabHost(f"cloud-{number}", "cloud", f"{PUBLIC_PREFIX}.{9 + number}", PUBLIC_BRIDGE, None, overlay_ip, None)


def _edge(number: int) -> LabHost:
    router = _router(number)
    return LabHost(
        f"edge-{number}",
        "edge",
        router.inside,
        router.lan_bridge,
        router.lan_address,
        f"10.10.0.{10 + number}",
        "bootstrap",
    )


def _router(number: int) -> Router:
    return Router(
        number=number,
        public_address=f"{PUBLIC_PREFIX}.{100 + number}",
        lan_address=f"192.168.{number}.1",
        lan_network=f"192.168.{number}.0/24",
        lan_bridge=f"lan-{number}",
        inside=f"192.168.{number}.20",
    )
