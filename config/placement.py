"""RLinf's placement grammar: `resources[:processes],...`. Pure.

Resources are numbered from 0 through the node groups in the order they are named. The rules are those of
`ComponentPlacement` and the placement strategies in RLinf 0.3.0.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from config.ranks import Group, Resource

_RANGE = re.compile(r"([0-9]{1,9})(?: *- *([0-9]{1,9}))?")
_MOST_PROCESSES = 100_000


class PlacementError(ValueError):
    """A placement breaks a rule."""

    def __init__(self, rule: str, fix: str) -> None:
        self.rule, self.fix = rule, fix
        super().__init__(f"{rule}; {fix}")


@dataclass(frozen=True)
class Process:
    """Where one process of a component runs."""

    node_rank: int
    resources: tuple[int, ...]
    """Ranks of its resources in the named groups; empty where the nodes themselves are the resources."""


def place(groups: Sequence[Group], text: str) -> tuple[Process, ...]:
    """Where each process of a component runs, in the order of process ranks.

    Args:
        groups: the node groups it is placed on, in the order named, at least one of them with a resource.
        text: the placement.

    Raises:
        PlacementError: a rule is broken.
    """
    bare = any(group.type is None for group in groups)
    _disjoint(groups, bare=bare)
    resources = [resource for group in groups for resource in group.resources]
    # Where one of several groups has no hardware, RLinf counts nodes in all of them, but reads ranks as before.
    node_ranks = [rank for group in groups for rank in group.node_ranks] if bare else []
    processes: list[Process] = []
    for ranks in _processes(text, len(resources), "; ".join(map(str, groups))):
        if bare:
            if len(ranks) > 1:
                raise PlacementError(
                    f"a process runs on one host, and this gives resources {_spelled(ranks)} to one",
                    "give at least as many processes as hosts",
                )
            if ranks[0] >= len(node_ranks):
                raise PlacementError(
                    f"these groups have {len(node_ranks)} hosts, and hosts are what is placed on where one of the "
                    f"groups has no hardware",
                    f"write ranks from 0 to {len(node_ranks) - 1}",
                )
            processes.append(Process(node_ranks[ranks[0]], ()))
        else:
            processes.append(_on_hardware(resources, ranks))
    _ascending(processes)
    return tuple(processes)


def _on_hardware(resources: Sequence[Resource], ranks: Sequence[int]) -> Process:
    taken = [resources[rank] for rank in ranks]
    hosts = {resource.node_rank for resource in taken}
    if len(hosts) > 1:
        raise PlacementError(
            f"a process runs on one host, and resources {_spelled(ranks)} are on hosts of ranks "
            f"{', '.join(map(str, sorted(hosts)))}",
            "give more processes, or resources of one host",
        )
    types = {str(resource.type) for resource in taken}
    if len(types) > 1:
        raise PlacementError(
            f"a process has hardware of one type, and resources {_spelled(ranks)} are {' and '.join(sorted(types))}",
            "give more processes, or resources of one group",
        )
    return Process(taken[0].node_rank, tuple(ranks))


def _disjoint(groups: Sequence[Group], *, bare: bool) -> None:
    seen: dict[str, set[int]] = {}
    for group in groups:
        if group.label in seen:
            raise PlacementError(f"each group is named once; {group.label} stands twice", "name it once")
        for label, ranks in seen.items():
            both = ranks.intersection(group.node_ranks)
            if bare and both:
                raise PlacementError(
                    f"groups whose hosts are placed on have no host in common; rank {min(both)} is in {label} and "
                    f"in {group.label}",
                    "name one of the two",
                )
        seen[group.label] = set(group.node_ranks)


def _ascending(processes: Sequence[Process]) -> None:
    for before, after in itertools.pairwise(processes):
        if after.node_rank < before.node_rank:
            raise PlacementError(
                f"processes come in the order of node ranks, and rank {after.node_rank} comes after "
                f"{before.node_rank} here",
                "name the groups in the order of their ranks",
            )


def _processes(text: str, count: int, available: str) -> list[list[int]]:
    """The resource ranks of each process, in the order of process ranks."""
    given: list[list[int]] = []
    last_resource = -1
    for part in filter(None, (each.strip() for each in text.split(","))):
        resources_text, colon, processes_text = (each.strip() for each in part.partition(":"))
        resources = _resources(resources_text, count, available)
        if resources[0] <= last_resource:
            raise PlacementError(
                f"resource ranks ascend and each stands once; {resources[0]} comes after {last_resource}",
                "write the parts in ascending order",
            )
        last_resource = resources[-1]
        processes = len(resources)
        if colon:
            first, last = _range(processes_text, "process ranks")
            if first != len(given):
                raise PlacementError(
                    f"process ranks are continuous from 0; {len(given)} comes next, and this says {first}",
                    f"write {part.partition(':')[0].strip()}:{len(given)}-{len(given) + last - first}",
                )
            processes = last - first + 1
        if processes % len(resources) and len(resources) % processes:
            raise PlacementError(
                f"the number of processes divides that of the resources or is divided by it; {part} gives "
                f"{len(resources)} resources to {processes} processes",
                "change one of the two",
            )
        if processes > _MOST_PROCESSES:
            raise PlacementError(f"at most {_MOST_PROCESSES} processes", "write fewer")
        given += _shares(resources, processes)
    if not given:
        raise PlacementError("a placement names at least one resource", "write `0`, a range such as `0-3`, or `all`")
    return given


def _shares(resources: Sequence[int], processes: int) -> list[list[int]]:
    """Which of the resources each process gets: several each, or one that several share."""
    if len(resources) >= processes:
        each = len(resources) // processes
        return [list(resources[index * each : (index + 1) * each]) for index in range(processes)]
    sharing = processes // len(resources)
    return [[resource] for resource in resources for _ in range(sharing)]


def _resources(text: str, count: int, available: str) -> Sequence[int]:
    if text.lower() == "all":
        return range(count)
    first, last = _range(text, "resource ranks")
    if last >= count:
        raise PlacementError(
            f"{available}: resource ranks go from 0 to {count - 1}",
            "write ranks in that range, or correct gpus and hardware of its hosts",
        )
    return range(first, last + 1)


def _range(text: str, what: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        more = "" if what == "process ranks" else ", or `all`"
        raise PlacementError(f"{what} are a number such as 2 or a range such as 0-3{more}", f"correct {text!r}")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise PlacementError(f"a range goes upwards; {text} does not", f"write {last}-{first}")
    return first, last


def _spelled(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + ("…" if len(ranks) > 8 else "")
