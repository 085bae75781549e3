"""Pulumi property values: between the wire (a protobuf `Struct`) and Python.

Plain values are `None`, `bool`, `float`, `str`, lists and dictionaries. What is secret, unknown or carries
dependencies is a `Marked` around the plain value, never nested directly in another `Marked`. Nulls in objects are
dropped, as the original drops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from google.protobuf import struct_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # a tag, the same everywhere
ASSET_SIGNATURE = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE_SIGNATURE = "0def7320c3a5731c473e5ecbe6d01bc7"
RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWNS = frozenset(
    {
        UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


@dataclass(frozen=True, slots=True)
class Marked:
    """A value that is secret, not known yet (then `element` means nothing), or depends on named resources."""

    element: Value
    secret: bool = False
    known: bool = True
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Content:
    """What assets and archives have in common."""

    fields: Mapping[str, Value]

    def text(self, name: str) -> str:
        """The named field, or the empty string."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


class Asset(_Content):
    """An asset: `fields` holds `text`, `path`, `uri` and `hash`, whichever are there."""

    __slots__ = ()


class Archive(_Content):
    """An archive: `fields` holds `assets`, `path`, `uri` and `hash`, whichever are there."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a resource, kept as it came."""

    fields: Mapping[str, Value]


Value: TypeAlias = "bool | float | str | list[Value] | dict[str, Value] | Marked | Asset | Archive | Reference | None"
Properties: TypeAlias = "dict[str, Value]"


def mark(value: Value, *, secret: bool = False, known: bool = True, dependencies: Iterable[str] = ()) -> Marked:
    """`value` with these marks added to those it has."""
    if isinstance(value, Marked):
        return replace(
            value,
            secret=value.secret or secret,
            known=value.known and known,
            dependencies=tuple(sorted({*value.dependencies, *dependencies})),
        )
    return Marked(value, secret=secret, known=known, dependencies=tuple(dependencies))


def plain(value: Value) -> Value:
    """`value` without its marks, at every depth; what is unknown becomes `None`."""
    if isinstance(value, Marked):
        return plain(value.element) if value.known else None
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {key: plain(element) for key, element in value.items()}
    return value


def plain_object(properties: Properties) -> dict[str, Value]:
    """Every property of `properties` without its marks."""
    return {key: plain(value) for key, value in properties.items()}


def text_of(properties: Mapping[str, Value], name: str) -> str | None:
    """The property `name` of plain properties if it is a text."""
    value = properties.get(name)
    return value if isinstance(value, str) else None


def texts_of(properties: Mapping[str, Value], name: str) -> list[str] | None:
    """The property `name` of plain properties if it is a list, its elements as texts."""
    value = properties.get(name)
    return [str(each) for each in value] if isinstance(value, list) else None


def object_of(properties: Mapping[str, Value], name: str) -> dict[str, Value]:
    """The property `name` of plain properties if it is an object, else an empty one."""
    value = properties.get(name)
    return value if isinstance(value, dict) else {}


def is_unknown(value: Value) -> bool:
    """Whether `value` itself, not something within it, is unknown."""
    return isinstance(value, Marked) and not value.known


def equal(a: Value, b: Value) -> bool:
    """Equality by value and marks; dependencies don't count, assets are compared by their hash where both have one."""
    if isinstance(a, Marked) or isinstance(b, Marked):
        first = a if isinstance(a, Marked) else Marked(a)
        second = b if isinstance(b, Marked) else Marked(b)
        if first.known != second.known or first.secret != second.secret:
            return False
        return not first.known or equal(first.element, second.element)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, Asset | Archive) and type(a) is type(b):
        hashes = (a.text("hash"), cast("Asset | Archive", b).text("hash"))
        return hashes[0] == hashes[1] if all(hashes) else a == b
    return type(a) is type(b) and a == b


def decode(message: struct_pb2.Struct) -> Properties:
    """The properties of a `Struct`."""
    return {
        key: value
        for key, value in ((key, _decode(field)) for key, field in message.fields.items())
        if value is not None
    }


def encode(properties: Properties) -> struct_pb2.Struct:
    """The `Struct` of `properties`; nulls are dropped."""
    message = struct_pb2.Struct()
    for key, value in properties.items():
        if value is not None:
            _encode(value, message.fields[key])
    return message


def _decode(value: struct_pb2.Value) -> Value:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return Marked("", known=False) if value.string_value in UNKNOWNS else value.string_value
    if kind == "number_value":
        return value.number_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(element) for element in value.list_value.values]
    if kind == "struct_value":
        return _decode_struct(value.struct_value)
    return None


def _decode_struct(message: struct_pb2.Struct) -> Value:
    fields = decode(message)
    signature = fields.pop(SIGNATURE, None)
    if signature is None:
        return fields
    if signature == SECRET_SIGNATURE:
        return mark(fields.get("value"), secret=True)
    if signature == OUTPUT_SIGNATURE:
        dependencies = fields.get("dependencies")
        return mark(
            fields.get("value"),
            secret=fields.get("secret") is True,
            known="value" in message.fields,
            dependencies=[str(urn) for urn in dependencies] if isinstance(dependencies, list) else (),
        )
    if signature == ASSET_SIGNATURE:
        return Asset(fields)
    if signature == ARCHIVE_SIGNATURE:
        return Archive(fields)
    if signature == RESOURCE_SIGNATURE:
        return Reference(fields)
    raise ValueError(f"unrecognized signature '{signature}' in property value")


def _encode(value: Value, into: struct_pb2.Value) -> None:
    if value is None:
        into.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, int | float):
        into.number_value = value
    elif isinstance(value, str):
        into.string_value = value
    elif isinstance(value, list):
        into.list_value.SetInParent()
        for element in value:
            _encode(element, into.list_value.values.add())
    elif isinstance(value, dict):
        _encode_fields(value, into)
    elif isinstance(value, Marked):
        _encode_marked(value, into)
    else:
        signature = {Asset: ASSET_SIGNATURE, Archive: ARCHIVE_SIGNATURE, Reference: RESOURCE_SIGNATURE}[type(value)]
        _encode_fields({SIGNATURE: signature, **value.fields}, into)


def _encode_fields(fields: Mapping[str, Value], into: struct_pb2.Value) -> None:
    into.struct_value.SetInParent()
    for key, field in fields.items():
        if field is not None:
            _encode(field, into.struct_value.fields[key])


def _encode_marked(value: Marked, into: struct_pb2.Value) -> None:
    if value.dependencies or (value.secret and not value.known):
        fields: dict[str, Value] = {SIGNATURE: OUTPUT_SIGNATURE}
        if value.known:
            fields["value"] = value.element
        if value.secret:
            fields["secret"] = True
        if value.dependencies:
            fields["dependencies"] = list(value.dependencies)
        _encode_fields(fields, into)
    elif not value.known:
        into.string_value = UNKNOWN_STRING
    elif value.secret:
        _encode_fields({SIGNATURE: SECRET_SIGNATURE, "value": value.element}, into)
    else:
        _encode(value.element, into)
