"""Inputs against their shape: what is wrong with them, and their defaults and secret marks.

The texts of the faults are the original's, Go type names and all, because they are what users see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lab.plugin_kit.values import Archive, Asset, Marked, Properties, Reference, Value, mark

from .shapes import Kind, ListOf, MapOf, Primitive, Property, Shape


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one property."""

    property_name: str
    reason: str


_FITS: dict[Primitive, Callable[[Value], bool]] = {
    "any": lambda _: True,
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, float),
    "integer": lambda value: isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
    "asset or archive": lambda value: not isinstance(value, dict),  # anything else is read as neither
    "archive": lambda value: isinstance(value, Archive),
}
_GO_NAMES: dict[Primitive, str] = {
    "any": "interface {}",
    "string": "string",
    "number": "float64",
    "integer": "int",
    "boolean": "bool",
    "asset or archive": "types.AssetOrArchive",
    "archive": "archive.Archive",
}
_GO_TYPES: dict[type, str] = {
    bool: "bool",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    Asset: "asset.Asset",
    Archive: "archive.Archive",
    Reference: "resource.ResourceReference",
}


def faults(properties: Properties, shape: Shape) -> list[Fault]:
    """Everything wrong with `properties`; unknown values are taken to become right."""
    found = [fault for each in shape.properties for fault in _property_faults(properties, each, shape.go_name)]
    found += [
        Fault(name, f"Unrecognized field '{name}' on '{shape.go_name}'")
        for name in properties
        if name not in shape.by_name
    ]
    return found


def describe(found: list[Fault]) -> str:
    """All faults as one message."""
    lines = "".join(f"\n\t{fault.property_name}: {fault.reason}" for fault in found)
    return f"{len(found)} failures decoding:{lines}"


def with_defaults(properties: Properties, shape: Shape) -> Properties:
    """`properties` with the defaults of `shape`; a nested object that is absent stays absent."""
    result = dict(properties)
    for each in shape.properties:
        value = result.get(each.name)
        if value is None:
            if each.default is not None:
                result[each.name] = each.default
        else:
            result[each.name] = _normalized(value, each.kind)
    return result


def with_secrets(properties: Properties, shape: Shape) -> Properties:
    """`properties` with those marked secret that `shape` says are, at every depth."""
    result = dict(properties)
    for each in shape.properties:
        value = result.get(each.name)
        if value is None:
            continue
        if isinstance(each.kind, Shape):
            value = _inside(value, each.kind)
        result[each.name] = mark(value, secret=True) if each.secret else value
    return result


def _normalized(value: Value, kind: Kind) -> Value:
    if isinstance(value, Marked):
        return replace(value, element=_normalized(value.element, kind)) if value.known else value
    if isinstance(kind, Shape) and isinstance(value, dict):
        return with_defaults(value, kind)
    if kind == "integer" and isinstance(value, float):
        return float(int(value))
    return value


def _inside(value: Value, shape: Shape) -> Value:
    if isinstance(value, Marked):
        return replace(value, element=_inside(value.element, shape)) if value.known else value
    return with_secrets(value, shape) if isinstance(value, dict) else value


def _property_faults(properties: Properties, each: Property, owner: str) -> Iterator[Fault]:
    value = properties.get(each.name)
    if value is None:
        if each.required:
            yield Fault(each.name, f"Missing required field '{each.name}' on '{owner}'")
        return
    fault = _value_fault(value, each.kind, owner, each.name)
    if fault:
        yield fault


def _value_fault(value: Value, kind: Kind, owner: str, name: str) -> Fault | None:
    if isinstance(value, Marked):
        return _value_fault(value.element, kind, owner, name) if value.known else None
    if value is None or (isinstance(kind, str) and _FITS[kind](value)):
        return None
    elements = _elements(value, kind, name)
    if elements is not None:
        found = (_value_fault(element, inner, owner, path) for element, inner, path in elements)
        return next((fault for fault in found if fault), None)
    return _mismatch(value, kind, owner, name)


def _elements(value: Value, kind: Kind, name: str) -> list[tuple[Value, Kind, str]] | None:
    """What is within a list or a map of the right kind: each element, its kind, and what faults call it."""
    if isinstance(kind, ListOf) and isinstance(value, list):
        return [(element, kind.element, f"{name}[{index}]") for index, element in enumerate(value)]
    if isinstance(kind, MapOf) and isinstance(value, dict):
        return [(element, kind.element, f"{name}[{key}] value") for key, element in value.items()]
    return None


def _mismatch(value: Value, kind: Kind, owner: str, name: str) -> Fault | None:
    if not isinstance(value, dict):
        expected, got = _go_name(kind), _go_type(value)
        return Fault(name, f"Field '{name}' on '{owner}' must be a '{expected}'; got '{got}' instead")
    if not isinstance(kind, Shape):
        reason = f"Cannot decode Object{{}} to type {_go_name(kind)}; it isn't a struct, and no custom decoder exists"
        return _nested(owner, name, reason)
    inner = faults(value, kind)
    return _nested(owner, name, describe(inner)) if inner else None


def _nested(owner: str, name: str, reason: str) -> Fault:
    return Fault(name, f"An error occurred decoding '{owner.rpartition('.')[2]}.{name}': {reason}")


def _go_name(kind: Kind) -> str:
    if isinstance(kind, Shape):
        return kind.go_name
    if isinstance(kind, ListOf):
        return "[]" + _go_name(kind.element)
    if isinstance(kind, MapOf):
        return "map[string]" + _go_name(kind.element)
    return _GO_NAMES[kind]


def _go_type(value: Value) -> str:
    return _GO_TYPES.get(type(value), "map[string]interface {}")
