"""The plan of a cluster: ranks, groups, overlay addresses, peers and ports. Pure, and without Pulumi.

Ranks are dense from 0, cloud nodes first, then edges, in the order listed: RLinf's managers live on rank 0, so
the first cloud node is head, rank 0 and launcher (`rlinf/scheduler/manager` in RLinf 0.3.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from config.models import Cluster, Host

Role = Literal["bootstrap", "head", "worker"]

ECHO_PORT = 11009
"""TCP port of the echo service (RFC 862) that every host offers on its overlay address only."""
RPC_PORT = 15910
"""Loopback port of EasyTier's RPC, outside the range 15888 to 15899 that other EasyTiers on the host may use."""


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
    group: str | None
    """Label of the RLinf node group; None on the bootstrap."""
    rank: int | None
    """RLinf node rank; None on the bootstrap."""
    overlay_ip: str
    peers: tuple[str, ...]
    """EasyTier peer URIs this host connects to; empty on the bootstrap."""


@dataclass(frozen=True)
class Plan:
    """Every host's place in the cluster."""

    bootstrap: Member
    nodes: tuple[Member, ...]
    """The Ray nodes in the order of their ranks."""
    ports: RayPorts

    @property
    def head(self) -> Member:
        """The Ray head, rank 0."""
        return self.nodes[0]

    @property
    def members(self) -> tuple[Member, ...]:
        """Every host, the bootstrap first."""
        return (self.bootstrap, *self.nodes)

    @property
    def ray_address(self) -> str:
        """Address of the head's GCS on the overlay, `host:port`."""
        return f"{self.head.overlay_ip}:{self.ports.gcs}"


def make_plan(cluster: Cluster) -> Plan:
    """The plan of validated settings.

    Every host but the bootstrap peers with the bootstrap; edges also with each cloud node that has a public
    address, so that their traffic need not pass the bootstrap, and its loss does not stop training.
    """
    port = cluster.overlay.port
    at_bootstrap = _uri(cluster.bootstrap.public_address or cluster.bootstrap.ssh.address, port)
    at_cloud = tuple(_uri(node.public_address, port) for node in cluster.cloud if node.public_address)
    bootstrap = Member(
        name=cluster.bootstrap.name,
        role="bootstrap",
        group=None,
        rank=None,
        overlay_ip=_ip(cluster.bootstrap),
        peers=(),
    )
    nodes = tuple(
        Member(
            name=node.name,
            role="head" if rank == 0 else "worker",
            group=node.group,
            rank=rank,
            overlay_ip=_ip(node),
            peers=(at_bootstrap,) if rank < len(cluster.cloud) else (at_bootstrap, *at_cloud),
        )
        for rank, node in enumerate(cluster.nodes)
    )
    return Plan(bootstrap=bootstrap, nodes=nodes, ports=RayPorts(gcs=cluster.ray.port))


def _ip(host: Host) -> str:
    return str(host.overlay_ip)


def _uri(address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"tcp://{host}:{port}"
