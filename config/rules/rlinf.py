"""Component placement and further keys of RLinf's `cluster:` block."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue, ValidationError

from config.base_config import RENDERED
from config.faults import Fault, from_validation, shown
from config.models import Cluster, PlacementOnGroup
from config.models.profiling import PROFILERS
from config.placement import PlacementError, place
from config.ranks import EVERY_NODE, Group, groups
from config.rules.groups import known_labels, no_such_group


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with where components run, and with what is passed on."""
    yield from _components(cluster)
    yield from _placements(cluster)
    yield from _options(cluster)


def components(key: str) -> list[str]:
    """The components that a key of `component_placement` names."""
    return [name.strip() for name in key.split(",")]


def _components(cluster: Cluster) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for key in cluster.rlinf.component_placement:
        for name in components(key):
            if name in first:
                rule = f"a component is placed once; `{first[name]}` places {name}, too"
                yield Fault(f"cluster.rlinf.component_placement.{key}", None, rule, "remove it from one of the two")
            first.setdefault(name, key)


def _placements(cluster: Cluster) -> Iterator[Fault]:
    known = groups(cluster)
    labels = known_labels(cluster)
    for component, where in cluster.rlinf.component_placement.items():
        key = f"cluster.rlinf.component_placement.{component}"
        on_group = isinstance(where, PlacementOnGroup)
        named: list[Group] = []
        for label in where.node_groups if on_group else (EVERY_NODE,):
            if label in known:
                named.append(known[label])
            elif label in labels:
                rule = "a group that components are placed on has a host that takes part; all of this one are out"
                yield Fault(f"{key}.node_group", label, rule, "place it elsewhere, or enable a host of the group")
            else:
                yield no_such_group(f"{key}.node_group", label, labels)
        if len(named) != (len(where.node_groups) if on_group else 1):
            continue
        if not any(group.resources for group in named):
            continue  # no node takes part at all, which is a fault of its own
        text = where.placement if on_group else where
        try:
            place(named, text)
        except PlacementError as error:
            yield Fault(f"{key}.placement" if on_group else key, shown(text), error.rule, error.fix)


def _options(cluster: Cluster) -> Iterator[Fault]:
    for name, value in cluster.rlinf.options.items():
        key = f"cluster.rlinf.options.{name}"
        if name in RENDERED:
            yield Fault(key, None, "this program renders this key itself", "remove it")
        elif name == "profiling" and value is not None:
            yield from _profiling(key, value)


def _profiling(key: str, value: JsonValue) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(key, shown(value), "must be an object: keys with values", "write `backend: nsight` under it")
        return
    backend = value.get("backend")
    profiler = PROFILERS.get(backend) if isinstance(backend, str) else None
    if profiler is None:
        rule = f"must be one of: {', '.join(PROFILERS)}"
        yield Fault(f"{key}.backend", None if backend is None else shown(backend), rule, "add or correct it")
        return
    try:
        profiler.model_validate(value)
    except ValidationError as error:
        yield from from_validation(error, profiler, key)
