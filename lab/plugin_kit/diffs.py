"""What changed between old and new inputs, in the terms of the engine's `Diff`.

A changed element of `triggers` is an update here, as in the original: it is the SDK that asks the engine to replace
on it (`replace_on_changes: ["triggers[*]"]`). Only adding or removing `triggers` as a whole replaces by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .protocol import provider_pb2
from .values import Marked, Properties, Value, equal

if TYPE_CHECKING:
    from collections.abc import Callable

    Kind = provider_pb2.PropertyDiff.Kind.ValueType

_ADD = provider_pb2.PropertyDiff.ADD
_DELETE = provider_pb2.PropertyDiff.DELETE
_UPDATE = provider_pb2.PropertyDiff.UPDATE
_REPLACING = {
    _ADD: provider_pb2.PropertyDiff.ADD_REPLACE,
    _DELETE: provider_pb2.PropertyDiff.DELETE_REPLACE,
    _UPDATE: provider_pb2.PropertyDiff.UPDATE_REPLACE,
}
_SIMPLE_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


class Change(NamedTuple):
    """One changed property: its path, and whether it was added, deleted or updated."""

    path: tuple[str | int, ...]
    kind: Kind


def changes(old: Properties, new: Properties) -> list[Change]:
    """Everything that differs between two objects, down to the deepest plain value."""
    return list(_object_changes(old, new, ()))


def response(found: Iterable[Change], replaces: Callable[[str], bool]) -> provider_pb2.DiffResponse:
    """The engine's answer; `replaces` says whether a change at a path, as text, replaces the resource."""
    answer = provider_pb2.DiffResponse(hasDetailedDiff=True)
    top: dict[str, None] = {}
    replacing: dict[str, None] = {}
    for change in found:
        path, head = path_text(change.path), str(change.path[0])
        kind = _REPLACING[change.kind] if replaces(path) else change.kind
        answer.detailedDiff[path].kind = kind
        top[head] = None
        if kind != change.kind:
            replacing[head] = None
    answer.diffs.extend(top)
    answer.replaces.extend(replacing)
    answer.changes = provider_pb2.DiffResponse.DIFF_SOME if top else provider_pb2.DiffResponse.DIFF_NONE
    return answer


def path_text(path: tuple[str | int, ...]) -> str:
    """A property path as the engine writes it: `environment.HOME`, `triggers[0]`, `environment["a-b"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _SIMPLE_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            escaped = step.replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


def _object_changes(old: Properties, new: Properties, path: tuple[str | int, ...]) -> Iterator[Change]:
    for key, was in old.items():
        here = (*path, key)
        if key not in new:
            if _has_value(was):
                yield Change(here, _DELETE)
        elif not _is_output(new[key]):
            yield from _value_changes(was, new[key], here)
    for key, is_now in new.items():
        if key not in old and _has_value(is_now):
            yield Change((*path, key), _ADD)


def _value_changes(old: Value, new: Value, path: tuple[str | int, ...]) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _object_changes(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (was, is_now) in enumerate(zip(old, new, strict=False)):
            yield from _value_changes(was, is_now, (*path, index))
        for index in range(len(old), len(new)):
            yield Change((*path, index), _ADD)
        for index in range(len(new), len(old)):
            yield Change((*path, index), _DELETE)
    elif not equal(old, new):
        yield Change(path, _UPDATE)


def _is_output(value: Value) -> bool:
    """Whether the original would see an output value here, whose differences it ignores."""
    return isinstance(value, Marked) and (bool(value.dependencies) or (value.secret and not value.known))


def _has_value(value: Value) -> bool:
    return value is not None and not (_is_output(value) and isinstance(value, Marked) and not value.known)
