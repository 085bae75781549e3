"""What a resource's properties are, and what follows from that: checks, defaults, diffs, previews."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from lab.plugin_kit import diffs
from lab.plugin_kit.protocol import provider_pb2
from lab.plugin_kit.values import Marked, Properties, Value, equal, is_unknown, mark, plain

Primitive: TypeAlias = Literal["string", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class Block:
    """An object with known properties; `token` names its type in the schema."""

    token: str
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; one whose order means nothing is `unordered`."""

    element: Kind
    unordered: bool = True


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map of texts: tags."""

    element: Primitive = "string"


Kind: TypeAlias = "Primitive | Block | ListOf | MapOf"


@dataclass(frozen=True, slots=True)
class Property:
    """One property.

    Attributes:
        replaces: a change of it makes another resource.
        computed: AWS chooses where the program does not, so that leaving it out is no change.
        output: AWS alone sets it.
        volatile: its value may be another one after any update that stops the instance.
    """

    name: str
    kind: Kind = "string"
    required: bool = False
    replaces: bool = False
    computed: bool = False
    output: bool = False
    default: str | bool | None = None
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """All properties of a resource or the arguments of a function. `autoname` is named after the resource if absent."""

    token: str
    properties: tuple[Property, ...]
    autoname: str = ""
    by_name: dict[str, Property] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.properties})

    @property
    def inputs(self) -> tuple[Property, ...]:
        """What a program may set."""
        return tuple(each for each in self.properties if not each.output)


TAGS = (Property("tags", MapOf()), Property("tagsAll", MapOf(), output=True))
REGION = Property("region", replaces=True, computed=True)
ARN = Property("arn", output=True)

_NAMES = {"bool": "bool", "float": "number", "str": "string", "list": "list", "dict": "object"}

Failure: TypeAlias = tuple[str, str]
"""The name of a property, and what is wrong with it."""


def failures(properties: Properties, shape: Shape, name: str) -> list[Failure]:
    """Everything wrong with a program's arguments; unknown values are taken to become right."""
    return list(_failures(properties, shape.inputs, name, ""))


def with_defaults(news: Properties, olds: Properties, shape: Shape, name: str, tags: Mapping[str, str]) -> Properties:
    """Checked arguments with defaults, the provider's default tags, and a name of its own where it needs one."""
    result = {key: value for key, value in news.items() if key != "__defaults"}
    defaults: list[Value] = []
    for each in shape.inputs:
        if each.default is not None and each.name not in result:
            result[each.name] = each.default
            defaults.append(each.name)
    if shape.autoname and shape.autoname not in result:
        old = olds.get(shape.autoname) if shape.autoname in _names(olds.get("__defaults")) else None
        result[shape.autoname] = old if old is not None else f"{name}-{secrets.token_hex(4)[:7]}"
        defaults.append(shape.autoname)
    if tags and "tags" in shape.by_name:
        own = result.get("tags")
        merged: Value = {**dict(tags), **own} if isinstance(own, dict) else own
        result["tags"] = dict(tags) if own is None else merged
    result["__defaults"] = defaults
    return result


def diff(old: Properties, new: Properties, shape: Shape, ignored: Mapping[str, None]) -> provider_pb2.DiffResponse:
    """What changed between a program's old and new arguments, and what that does."""
    before, after = dict(old), dict(new)
    for properties in (before, after):
        properties.pop("__defaults", None)
    for name in ignored:
        after.pop(name, None)
        before.pop(name, None)
    for each in shape.inputs:
        if each.computed and each.name in before and each.name not in after:
            del before[each.name]
        if isinstance(each.kind, ListOf) and each.kind.unordered:
            for properties in (before, after):
                properties[each.name] = _sorted(properties.get(each.name))
        if isinstance(each.kind, Block):
            _forget_computed(before, after, each.name, each.kind)
    user_data = plain(after.get("userDataReplaceOnChange")) is True

    def replaces(path: str) -> bool:
        if path in {"userData", "userDataBase64"}:
            return user_data
        return _replaces(path, shape)

    answer = diffs.response(diffs.changes(_known(before), after), replaces)
    named = shape.autoname and shape.autoname not in _names(new.get("__defaults"))
    if answer.replaces and named and equal(old.get(shape.autoname), new.get(shape.autoname)):
        answer.deleteBeforeReplace = True
    return answer


def previewed(inputs: Properties, shape: Shape, old: Properties | None = None) -> Properties:
    """The state of a resource about to be created, or updated from the state `old`."""
    state: Properties = {}
    stops = old is not None and any(
        not equal(plain(old.get(name)), plain(inputs.get(name)))
        for name in ("instanceType", "userData", "userDataBase64")
    )
    for each in shape.properties:
        if not each.output and each.name in inputs:
            state[each.name] = inputs[each.name]
        elif each.name == "tagsAll":
            state[each.name] = inputs.get("tags", {})
        elif each.output or each.computed:
            known = old is not None and each.name in old and not (stops and each.volatile)
            state[each.name] = old[each.name] if known and old is not None else mark("", known=False)
    return state


def known(inputs: Properties, shape: Shape) -> Properties:
    """The state of a resource that is there, of which no more is known than what it was asked for with."""
    return {each.name: inputs[each.name] for each in shape.properties if each.name in inputs}


def asked_for(old: Properties, inputs: Properties, shape: Shape) -> Properties:
    """A state with what a program asked for in place of what was there, as if all of it had been done."""
    state = dict(old)
    for name, value in known(inputs, shape).items():
        was = old.get(name)
        block = isinstance(shape.by_name[name].kind, Block)
        state[name] = {**was, **value} if block and isinstance(was, dict) and isinstance(value, dict) else value
    return with_secrets(state, inputs)


def with_secrets(state: Properties, inputs: Properties) -> Properties:
    """A state in which all that comes from a secret argument is secret."""
    result = dict(state)
    for name, value in inputs.items():
        if isinstance(value, Marked) and value.secret and name in result:
            result[name] = mark(result[name], secret=True)
            if name == "tags" and "tagsAll" in result:
                result["tagsAll"] = mark(result["tagsAll"], secret=True)
        elif isinstance(value, dict) and isinstance(inner := result.get(name), dict):
            result[name] = with_secrets(inner, value)
    return result


def refreshed(inputs: Properties, state: Properties, shape: Shape) -> Properties:
    """A program's arguments as they are in the account: those that it set, or, after an import, all there are."""
    wanted = [each.name for each in shape.inputs if each.name in inputs] if inputs else []
    wanted = wanted or [each.name for each in shape.inputs if each.name in state and each.name != "region"]
    result: Properties = dict(inputs)
    for name in wanted:
        if name not in state:
            continue
        given, found = inputs.get(name), state[name]
        if isinstance(given, dict) and isinstance(found, dict) and not isinstance(shape.by_name[name].kind, MapOf):
            result[name] = {key: found.get(key, value) for key, value in given.items()}
        elif not equal(_sorted(plain(given)), _sorted(plain(found))):
            result[name] = found
    result.setdefault("__defaults", [])
    return result


def _failures(properties: Properties, allowed: tuple[Property, ...], owner: str, prefix: str) -> Iterator[Failure]:
    by_name = {each.name: each for each in allowed}
    for each in allowed:
        path, value = f"{prefix}{each.name}", properties.get(each.name)
        if value is None:
            if each.required:
                reason = (
                    f'Missing required argument. The argument "{each.name}" is required, but no definition was found..'
                )
                yield path, f"{reason} Examine values at '{owner}.{path}'."
            continue
        yield from _mismatches(value, each.kind, owner, path)
    for name in properties.keys() - by_name.keys() - {"__defaults", "version"}:
        reason = "Invalid or unknown key, or no part of this substitute for the aws plugin."
        yield f"{prefix}{name}", f"{reason} Examine values at '{owner}.{prefix}{name}'."


def _mismatches(value: Value, kind: Kind, owner: str, path: str) -> Iterator[Failure]:
    if isinstance(value, Marked):
        if value.known:
            yield from _mismatches(value.element, kind, owner, path)
    elif value is None:
        return
    elif isinstance(kind, ListOf) and isinstance(value, list):
        for index, element in enumerate(value):
            yield from _mismatches(element, kind.element, owner, f"{path}[{index}]")
    elif isinstance(kind, MapOf) and isinstance(value, dict):
        for key, element in value.items():
            yield from _mismatches(element, kind.element, owner, f"{path}.{key}")
    elif isinstance(kind, Block) and isinstance(value, dict):
        yield from _failures(value, kind.properties, owner, f"{path}.")
    elif not _fits(value, kind):
        found = _NAMES.get(type(value).__name__, "asset")
        wanted = kind if isinstance(kind, str) else type(kind).__name__.lower().removesuffix("of")
        yield path, f"expected {wanted} type, got {found} type. Examine values at '{owner}.{path}'."


def _fits(value: Value, kind: Kind) -> bool:
    match kind:
        case "string":
            return isinstance(value, str | float | bool)
        case "number":
            return isinstance(value, float) or (isinstance(value, str) and value.isdigit())
        case "boolean":
            return isinstance(value, bool) or value in {"true", "false"}
        case _:
            return False


def _replaces(path: str, shape: Shape) -> bool:
    head, _, rest = path.partition(".")
    found = shape.by_name.get(head.partition("[")[0])
    if found is None:
        return False
    if found.replaces or not isinstance(found.kind, Block) or not rest:
        return found.replaces
    inner = {each.name: each for each in found.kind.properties}.get(rest.partition(".")[0].partition("[")[0])
    return inner is not None and inner.replaces


def _forget_computed(before: Properties, after: Properties, name: str, block: Block) -> None:
    """Drops what AWS chose in a block from its old arguments."""
    was, is_now = before.get(name), after.get(name)
    if isinstance(was, dict) and isinstance(is_now, dict):
        computed = {each.name for each in block.properties if each.computed}
        before[name] = {key: value for key, value in was.items() if key in is_now or key not in computed}


def _known(properties: Properties) -> Properties:
    return {name: value for name, value in properties.items() if not is_unknown(value)}


def _sorted(value: Value) -> Value:
    if isinstance(value, Marked):
        return replace(value, element=_sorted(value.element)) if value.known else value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return sorted(value, key=str)
    return value


def _names(value: Value) -> set[str]:
    return {str(each) for each in value} if isinstance(value, list) else set()
