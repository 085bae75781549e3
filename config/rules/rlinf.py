"""Component placement and further keys of RLinf's `cluster:` block."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from config.base_config import RENDERED
from config.faults import Fault, nearest, shown
from config.models import Cluster, PlacementOnGroup
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
        elif name == "profiling":
            yield from _profiling(key, value)


_PROFILERS = {
    "nsight": ("options", "flags"),
    "rocprof_sys": ("args", "env"),
}
_PROFILING = ("backend", "enabled", "worker_groups", "steps", "output_dir")


def _profiling(key: str, value: JsonValue) -> Iterator[Fault]:
    """The only further key of which RLinf 0.3.0 checks what is in it (`ProfileConfig`)."""
    if not isinstance(value, dict):
        yield Fault(key, shown(value), "must be an object", "write `backend: nsight` under it")
        return
    backend = value.get("backend")
    if backend not in _PROFILERS:
        rule = f"must be one of: {', '.join(_PROFILERS)}"
        yield Fault(f"{key}.backend", None if backend is None else shown(backend), rule, "add or correct it")
        return
    known = (*_PROFILING, *_PROFILERS[str(backend)])
    for name in value:
        if name not in known:
            near = nearest(name, known)
            fix = f"write `{near}`" if near else "remove it"
            rule = f"RLinf's profiler {backend} does not know this key"
            yield Fault(f"{key}.{name}", None, rule, f"{fix}; the keys here are: {', '.join(known)}")
