"""The plan of a cluster: ranks, groups, overlay addresses, peers and ports. Pure, and without Pulumi.

Ranks are dense from 0, cloud nodes first, then edges, in the order listed, unless the settings give them: RLinf's
managers live on rank 0, so the first cloud node that takes part is head, rank 0 and launcher
(`rlinf/scheduler/manager` in RLinf 0.3.0).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from config.models import Bootstrap, Cluster, RayHost
from config.ranks import ranked
from config.reach import endpoint

Role = Literal["bootstrap", "head", "worker"]
State = Literal["enabled", "disabled", "lost", "pending", "joined"]
"""`pending`: its owner is still to run the join script; `joined`: he has."""


@dataclass(frozen=True)
class RayPorts:
    """The ports of Ray on one node, all pinned, so that a firewall can name them.

    They lie below Linux's ephemeral range (32768 and up), so that no outgoing connection can take one.
    """

    gcs: int
    node_manager: int = 20001
    object_manager: int = 20002
    runtime_env_agent: int = 20003
    dashboard_agent_grpc: int = 20004
    dashboard_agent_http: int = 20005
    metrics: int = 20006
    client: int = 20007
    """Of the head only, as the next two."""
    autoscaler_metrics: int = 20008
    dashboard_metrics: int = 20009
    first_worker: int = 20100
    last_worker: int = 21099

    @property
    def fixed(self) -> tuple[int, ...]:
        """The ports with one listener each, the head's included."""
        return (
            self.gcs,
            self.node_manager,
            self.object_manager,
            self.runtime_env_agent,
            self.dashboard_agent_grpc,
            self.dashboard_agent_http,
            self.metrics,
            self.client,
            self.autoscaler_metrics,
            self.dashboard_metrics,
        )

    @property
    def firewall(self) -> str:
        """All ports as the elements of an nft set; Ray Client's servers take 23000 to 23999, which no flag moves."""
        return ", ".join([*map(str, self.fixed), f"{self.first_worker}-{self.last_worker}", "23000-23999"])

    def arguments(self, role: Role, head_ip: str) -> str:
        """The arguments of `ray start` that set role and ports, separated by spaces."""
        if role == "head":
            start = f"--head --port={self.gcs} --dashboard-host=127.0.0.1 --ray-client-server-port={self.client}"
        else:
            start = f"--address={head_ip}:{self.gcs}"
        return (
            f"{start} --node-manager-port={self.node_manager} --object-manager-port={self.object_manager}"
            f" --runtime-env-agent-port={self.runtime_env_agent}"
            f" --dashboard-agent-grpc-port={self.dashboard_agent_grpc}"
            f" --dashboard-agent-listen-port={self.dashboard_agent_http}"
            f" --metrics-export-port={self.metrics}"
            f" --min-worker-port={self.first_worker} --max-worker-port={self.last_worker}"
        )


@dataclass(frozen=True)
class Member:
    """One host's place in the cluster."""

    name: str
    role: Role
    groups: tuple[str, ...]
    """Labels of the RLinf node groups; none on a bootstrap."""
    rank: int | None
    """RLinf node rank; None on a bootstrap, and on a node that takes no part."""
    ip: str
    """Address in the overlay; in direct mode the host's own."""
    device: str
    """Network device with that address."""
    peers: tuple[str, ...]
    """EasyTier peer URIs this host connects to."""
    state: State
    listens: bool = True
    """Whether EasyTier listens for others there; a host that joins is asked for no port."""

    @property
    def is_absent(self) -> bool:
        """Whether nobody can log in: the host is gone, or has not joined yet."""
        return self.state in {"lost", "pending"}

    @property
    def runs_ray(self) -> bool:
        """Whether Ray is to run there by now."""
        return self.state in {"enabled", "joined"}


@dataclass(frozen=True)
class Plan:
    """Every host's place in the cluster."""

    members: tuple[Member, ...]
    """Every host: bootstraps, nodes in the order of their ranks, then those that take no part."""
    ports: RayPorts
    direct: bool
    """Whether the nodes reach each other without an overlay."""

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Member]:
        return {member.name: member for member in self.members}

    def member(self, name: str) -> Member:
        """A host's place."""
        return self._by_name[name]

    @property
    def bootstraps(self) -> tuple[Member, ...]:
        """The bootstraps that are there."""
        return tuple(member for member in self.members if member.role == "bootstrap" and member.state == "enabled")

    @property
    def nodes(self) -> tuple[Member, ...]:
        """The Ray nodes that take part, in the order of their ranks."""
        return tuple(member for member in self.members if member.rank is not None)

    @property
    def head(self) -> Member:
        """The Ray head, rank 0."""
        return next(member for member in self.members if member.rank == 0)

    @property
    def ray_address(self) -> str:
        """Address of the head's GCS, `host:port`."""
        return f"{self.head.ip}:{self.ports.gcs}"


def make_plan(cluster: Cluster) -> Plan:
    """The plan of validated settings.

    Every host peers with the bootstraps, each bootstrap with those before it; edges also with each cloud node that
    has a public address, so that their traffic need not pass a bootstrap, and its loss does not stop training.
    """
    ranks = {node.name: rank for rank, node in ranked(cluster).items()}
    device = cluster.device if cluster.overlay is None else cluster.overlay.device
    at_bootstraps, at_cloud = _listeners(cluster)

    def bootstrap(host: Bootstrap, index: int) -> Member:
        before = cluster.bootstraps[:index]
        return Member(
            name=host.name,
            role="bootstrap",
            groups=(),
            rank=None,
            ip=_ip(host),
            device=str(device),
            peers=tuple(at_bootstraps[other.name] for other in before if not other.lost),
            state="lost" if host.lost else "enabled",
        )

    def node(host: RayHost, *, edge: bool) -> Member:
        peers = (*at_bootstraps.values(), *(at_cloud.values() if edge else ()))
        return Member(
            name=host.name,
            role="head" if ranks.get(host.name) == 0 else "worker",
            groups=host.groups,
            rank=ranks.get(host.name),
            ip=_ip(host),
            device=host.device or str(device),
            peers=peers,
            state=_state(host),
            listens=host.join is None,
        )

    nodes = [
        *(node(host, edge=False) for host in cluster.cloud),
        *(node(host, edge=True) for host in cluster.edges),
    ]
    nodes.sort(key=lambda member: len(nodes) if member.rank is None else member.rank)
    bootstraps = (bootstrap(host, index) for index, host in enumerate(cluster.bootstraps))
    return Plan(members=(*bootstraps, *nodes), ports=RayPorts(gcs=cluster.ray.port), direct=cluster.direct)


def _state(host: RayHost) -> State:
    if host.lost:
        return "lost"
    if host.pending:
        return "pending"
    if not host.enabled:
        return "disabled"
    return "enabled" if host.join is None else "joined"


def _listeners(cluster: Cluster) -> tuple[dict[str, str], dict[str, str]]:
    """Where EasyTier listens for others: name to peer URI, of bootstraps and of cloud nodes."""
    if cluster.overlay is None:
        return {}, {}
    port = cluster.overlay.port
    bootstraps = {
        host.name: _uri(address, port)
        for host in cluster.bootstraps
        if not host.lost and (address := host.public_address or host.ssh.address)
    }
    cloud = {
        node.name: _uri(node.public_address, port) for node in cluster.cloud if node.public_address and not node.lost
    }
    return bootstraps, cloud


def _ip(host: Bootstrap | RayHost) -> str:
    given = host.overlay_ip or (host.address if isinstance(host, RayHost) else None) or host.ssh.address
    if given is None:
        raise ValueError(f"{host.name} has no address")  # the rules see to it
    return str(given)


def _uri(address: str, port: int) -> str:
    return f"tcp://{endpoint(address, port)}"
