"""Whether two parsers agree on settings: ours and RLinf's own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from components.rlinf import render_config
from config.faults import Fault, SettingsError
from config.load import parse
from config.models import Cluster, PlacementOnGroup
from config.placement import place
from config.ranks import EVERY_NODE, Group, Resource, groups
from tests.proof.drafts import Settings
from tests.proof.naive import naive
from tests.proof.process_drafts import Place
from tests.proof.rlinf import Accepted, Answer, Oracle
from tests.proof.stricter import why_stricter


@dataclass
class Case:
    """Settings to put through both parsers."""

    settings: Settings
    broken: str = ""
    """How they were broken."""
    meant: dict[str, list[Place]] | None = None
    """Where each process is to run; known of settings that were not broken."""


@dataclass
class Tally:
    """What came of all cases."""

    started: float = field(default_factory=time.monotonic)
    outcomes: Counter[str] = field(default_factory=Counter[str])
    stricter: Counter[str] = field(default_factory=Counter[str])
    broken: Counter[str] = field(default_factory=Counter[str])
    processes: int = 0

    def __str__(self) -> str:
        seconds = time.monotonic() - self.started
        total = sum(self.outcomes.values())
        lines = [f"{total} generated settings through both parsers in {seconds:.0f} s: no disagreement"]
        lines += [f"{count:7} {what}" for what, count in self.outcomes.most_common()]
        lines += [f"{self.processes:7} processes placed by both, each on the same node and resources"]
        lines += ["refused here only, on purpose:"]
        lines += [f"{count:7} {why}" for why, count in self.stricter.most_common()]
        lines += ["broken, in one way or two:"]
        lines += [f"{count:7} {how}" for how, count in self.broken.most_common()]
        return "\n".join(lines)


def agree(oracle: Oracle, drawn: Case, tally: Tally) -> None:
    """Fails unless both parsers agree on a case."""
    config, machines = naive(drawn.settings)
    oracle.begin(config, machines)
    try:
        cluster, faults = parsed(drawn.settings)
        text = render_config(cluster) if cluster else ""
    finally:
        unchecked = oracle.end()
    tally.broken.update(filter(None, drawn.broken.split(" and ")))
    if cluster is None:
        assert drawn.meant is None, f"we refuse right settings: {faults}"
        tally.outcomes[agreed_refusal(unchecked, faults, drawn.settings, tally)] += 1
        return
    answer = oracle.ask(text, machines)
    assert isinstance(answer, Accepted), f"we accept what RLinf refuses: {answer}"
    assert answer == unchecked, "we render something else than the settings say"
    ours = placements(cluster, answer)
    assert answer.placements == ours, "RLinf places a component elsewhere than we say"
    if drawn.meant is not None:
        assert ours == {name: list(written(places)) for name, places in drawn.meant.items()}
    tally.processes += sum(map(len, ours.values()))
    tally.outcomes["accepted by both" + (", though changed" if drawn.broken else "")] += 1


def parsed(raw: Settings) -> tuple[Cluster | None, tuple[Fault, ...]]:
    """What our parser makes of settings."""
    try:
        return parse(raw), ()
    except SettingsError as error:
        return None, error.faults


def agreed_refusal(unchecked: Answer, faults: tuple[Fault, ...], raw: Settings, tally: Tally) -> str:
    """RLinf refuses it, too, or each of our faults is one that is meant to be ours alone."""
    if not isinstance(unchecked, Accepted):
        return "refused by both"
    reasons = {fault: why_stricter(fault, raw) for fault in faults}
    not_meant = [fault for fault, reason in reasons.items() if reason is None]
    assert not not_meant, f"we refuse what RLinf accepts: {not_meant}"
    tally.stricter.update({reason for reason in reasons.values() if reason})
    return "refused here only"


def placements(cluster: Cluster, answer: Accepted) -> dict[str, list[dict[str, Any]]]:
    """Where our settings say that each component runs, in the form of RLinf's answer."""
    known = groups(cluster)
    found: dict[str, list[dict[str, Any]]] = {}
    for key, where in cluster.rlinf.component_placement.items():
        named = [
            known[label] for label in (where.node_groups if isinstance(where, PlacementOnGroup) else (EVERY_NODE,))
        ]
        owners = [(group, resource) for group in named for resource in group.resources]
        places: list[Place] = []
        for process in place(named, where.placement if isinstance(where, PlacementOnGroup) else where):
            group = owners[process.resources[0]][0] if process.resources else None
            label = group.label if group else next(one.label for one in named if process.node_rank in one.node_ranks)
            places.append(Place(process.node_rank, label, tuple(local(owners, rank) for rank in process.resources)))
        found |= {name.strip(): list(written(places)) for name in key.split(",")}
    assert {label: list(group.node_ranks) for label, group in known.items()} == {
        label: group["nodes"] for label, group in answer.groups.items()
    }
    return found


def local(owners: list[tuple[Group, Resource]], rank: int) -> int:
    """The number that a resource has on its node, from its rank in the groups named."""
    group, resource = owners[rank]
    first = next(
        index for index, (owner, one) in enumerate(owners) if owner is group and one.node_rank == resource.node_rank
    )
    return rank - first


def written(places: list[Place]) -> Iterator[dict[str, Any]]:
    """Places in the form of RLinf's answer."""
    for process, each in enumerate(places):
        yield {"process": process, "node": each.node, "group": each.group, "resources": list(each.resources)}
