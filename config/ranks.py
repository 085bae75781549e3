"""Ranks of the nodes, and what RLinf places on: the resources of each node group. Pure.

Ranks are dense from 0 over the nodes that count, since RLinf refuses holes, and its managers live on rank 0
(`NodeProbe._sort_nodes` in RLinf 0.3.0). What a resource is follows `NodeGroupInfo` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from config.models import Cluster, RayHost

EVERY_NODE = "cluster"
"""RLinf's own group of all nodes; a placement without a group is on it."""
BARE_NODES = "node"
"""RLinf's own group of all nodes, each one resource, whatever it has."""
RESERVED = (EVERY_NODE, BARE_NODES)

ACCELERATOR = "Accelerator"


def ranked(cluster: Cluster) -> dict[int, RayHost]:
    """Rank to node, in the order of ranks, for the nodes that count.

    A node without a rank of its own takes the first that is free, in the order listed. Of two nodes with the same
    rank, the later one is left out; that is a fault, found elsewhere.
    """
    counting = [node for node in cluster.nodes if node.counts]
    taken: dict[int, RayHost] = {}
    for node in counting:
        if node.rank is not None:
            taken.setdefault(node.rank, node)
    free = (rank for rank in range(2 * len(counting)) if rank not in taken)
    given = {next(free): node for node in counting if node.rank is None}
    return dict(sorted((taken | given).items()))


@dataclass(frozen=True)
class Resource:
    """One thing that a process can be placed on."""

    node_rank: int
    type: str | None
    """`Accelerator`, the type of a robot, or None for the node itself."""


@dataclass(frozen=True)
class Group:
    """A node group as RLinf sees it."""

    label: str
    node_ranks: tuple[int, ...]
    """Ascending."""
    type: str | None
    """Of its resources."""
    resources: tuple[Resource, ...]
    """Numbered from 0 in the order of ranks."""

    def __str__(self) -> str:
        count = len(self.resources)
        plural = "" if count == 1 else "s"
        what = {None: f"host{plural}", ACCELERATOR: f"accelerator{plural}"}.get(self.type, f"{self.type} robot{plural}")
        return f"the group {self.label} has {count} {what}"


def groups(cluster: Cluster) -> dict[str, Group]:
    """Label to node group, in the order of ranks, with RLinf's own two."""
    nodes = ranked(cluster)
    members: dict[str, dict[int, RayHost]] = {}
    for rank, node in nodes.items():
        for label in node.groups:
            members.setdefault(label, {})[rank] = node
    found: dict[str, Group] = {}
    for label, hosts in members.items():
        settings = cluster.rlinf.node_groups.get(label)
        ignore = settings is not None and settings.ignore_hardware
        found[label] = _group(label, hosts, ignore=ignore)
    found[EVERY_NODE] = _group(EVERY_NODE, nodes, ignore=False)
    found[BARE_NODES] = _group(BARE_NODES, nodes, ignore=True)
    return found


def robots(host: RayHost, label: str) -> Iterator[str]:
    """Types of the robots that a host has in a group."""
    for robot in host.hardware:
        if label == robot.group or (robot.group is None and host.groups == (label,)):
            yield robot.type


def _group(label: str, hosts: dict[int, RayHost], *, ignore: bool) -> Group:
    driven = {rank: tuple(robots(host, label)) for rank, host in hosts.items()}
    types = {type_ for each in driven.values() for type_ in each}
    if types:
        type_ = min(types)
        # RLinf counts what a node has of a type, whichever of its groups declares it (`get_hw_resource_count`).
        counts = {rank: sum(robot.type == type_ for robot in host.hardware) for rank, host in hosts.items()}
    elif not ignore and any(host.gpus for host in hosts.values()):
        type_, counts = ACCELERATOR, {rank: host.gpus for rank, host in hosts.items()}
    else:
        type_, counts = None, dict.fromkeys(hosts, 1)
    resources = tuple(Resource(rank, type_) for rank, count in counts.items() for _ in range(count))
    return Group(label, tuple(hosts), type_, resources)
