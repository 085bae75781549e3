"""Placements by construction, for `drafts.py`: where each process is to run, and one way to write that down."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.proof.choices import Choices

COMPONENTS = ("actor", "rollout", "env", "reward", "critic_2", "agent-x")


@dataclass(frozen=True)
class Place:
    """Where one process is to run."""

    node: int
    """Node rank."""
    group: str
    resources: tuple[int, ...]
    """Numbers of its accelerators or robots on that node; empty where the node itself is the resource."""


@dataclass
class Pool:
    """What a node group has, in the order in which RLinf numbers it."""

    label: str
    nodes: list[int]
    kind: str | None
    """`Accelerator`, the type of a robot, or None where each node is one resource."""
    resources: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Of each resource: the node rank, and the number on that node."""


def component_placements(some: Choices, pools: Mapping[str, Pool]) -> tuple[dict[str, Any], dict[str, list[Place]]]:
    """`rlinf.component_placement`, and where each process of each component is to run."""
    names = some.shuffled(COMPONENTS)[: some.between(1, 4)]
    written: dict[str, Any] = {}
    places: dict[str, list[Place]] = {}
    while names:
        together = [names.pop() for _ in range(min(len(names), 2 if some.one_in(3) else 1))]
        value, meant = component_placement(some, pools)
        written[some.of((",", ", ")).join(together)] = value
        places |= dict.fromkeys(together, meant)
    return written, places


def component_placement(some: Choices, pools: Mapping[str, Pool]) -> tuple[object, list[Place]]:
    """Where one component runs, as it is written and as it is meant."""
    labels = [some.of(sorted(pools))]
    if len(pools) > 3 and some.one_in(3):
        labels = some.shuffled(sorted(set(pools) - {"cluster", "node"}))[:2]
    if not fit_together([pools[label] for label in labels]):
        labels = labels[:1]
    parts, places = process_map(some, [pools[label] for label in labels])
    if not in_order(places):
        labels = labels[:1]
        parts, places = process_map(some, [pools[label] for label in labels])
    text = some.of((",", ", ")).join(parts)
    placement = int(text) if text.isdigit() and some.flip() else text
    if labels == ["cluster"] and some.flip():
        return some.of((placement, {"placement": placement})), places
    group = some.of((",".join(labels), ", ".join(labels), labels, 4090 if labels == ["4090"] else labels))
    return {"node_group": group, "placement": placement}, places


def fit_together(pools: Sequence[Pool]) -> bool:
    """Where RLinf places on nodes, it refuses a node that is in two of the groups."""
    nodes = [node for pool in pools for node in pool.nodes]
    return all(pool.kind is not None for pool in pools) or len(set(nodes)) == len(nodes)


def in_order(places: Sequence[Place]) -> bool:
    """RLinf wants the processes of a component in the order of their nodes."""
    return all(before.node <= after.node for before, after in itertools.pairwise(places))


def process_map(some: Choices, pools: Sequence[Pool]) -> tuple[list[str], list[Place]]:
    """The parts of a placement on these groups, and where each process then runs."""
    bare = any(pool.kind is None for pool in pools)
    resources = [(pool, node, (number,)) for pool in pools for node, number in pool.resources]
    count = len(resources)
    if bare:
        # Where one group has no hardware, RLinf counts nodes in all of them, but reads ranks as if it had not.
        resources = [(pool, node, ()) for pool in pools for node in pool.nodes]
    usable = min(count, len(resources))
    parts: list[str] = []
    places: list[Place] = []
    start = some.between(0, usable - 1) if some.one_in(3) else 0
    while start < usable and len(parts) < 3:
        length = usable - start - some.between(0, usable - start - 1)
        taken = resources[start : start + length]
        each = 1 if bare else some.of(shares(taken))
        sharing = some.between(1, 3) if each == 1 else 1
        processes = [
            Place(taken[first][1], taken[first][0].label, sum((one[2] for one in taken[first : first + each]), ()))
            for first in range(0, length, each)
            for _ in range(sharing)
        ]
        parts.append(part(some, (start, length), count, (len(places), len(processes))))
        places += processes
        start += length + some.between(0, 1)
    return parts, places


def shares(taken: Sequence[tuple[Pool, int, tuple[int, ...]]]) -> list[int]:
    """How many of these resources a process can have, so that all of its are on one node and of one kind."""
    return [
        each
        for each in range(1, len(taken) + 1)
        if len(taken) % each == 0
        and all(
            len({(pool.kind, node) for pool, node, _ in taken[first : first + each]}) == 1
            for first in range(0, len(taken), each)
        )
    ]


def part(some: Choices, resources: tuple[int, int], count: int, processes: tuple[int, int]) -> str:
    """`resources[:processes]`, in one of the ways to write it.

    Args:
        some: chooses one.
        resources: the first resource rank, and how many.
        count: how many resources there are.
        processes: the first process rank, and how many.
    """
    left = written(some, *resources)
    if resources == (0, count) and some.flip():
        left = some.of(("all", "ALL"))
    if processes[1] == resources[1] and some.flip():
        return left
    return f"{left}:{written(some, *processes)}"


def written(some: Choices, first: int, length: int) -> str:
    """A range; of one, also as a single number."""
    span = f"{first}-{first + length - 1}"
    return some.of((str(first), span)) if length == 1 else span
