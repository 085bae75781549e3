"""Faults in the settings: each names the key, the value, the rule and the fix; all are reported at once.

Pydantic finds what is wrong with a single field; this module puts that in the project's words. What is marked
`Hidden` in the models is never repeated, since people keep tokens there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from config.models import Hidden, Model

_LONGEST_VALUE = 80
_SECRETIVE = re.compile(r"secret|token|passw|private|credential|key", re.IGNORECASE)

_RULES = {
    "bool_type": "must be true or false",
    "dict_type": "must be an object: keys with values",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be a whole number, without quotes",
    "ip_v4_address": "must be an IPv4 address, such as 10.10.0.1",
    "ip_v4_network": "must be an IPv4 range that begins with its first address, such as 10.10.0.0/24",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "literal_error": "must be one of: {expected}",
    "model_type": "must be an object: keys with values",
    "string_too_long": "must have at most {max_length} characters",
    "string_type": "must be a text; what YAML takes for something else needs quotes",
    "too_short": "must have at least {min_length} entry",
}
"""Kinds of error of pydantic, in the project's words."""

# What pydantic keeps as a field's type: a class, or a form of `typing` of unknown shape.
Annotation = Any


@dataclass(frozen=True)
class Fault:
    """One thing wrong with the settings."""

    key: str
    """Path of the setting, such as `cluster.edges[0].overlay_ip`."""
    value: str | None
    """What was given, shortened; None where nothing was given or it must not be shown."""
    rule: str
    """What must hold."""
    fix: str
    """What to do."""

    def __str__(self) -> str:
        head = self.key if self.value is None else f"{self.key}: {self.value}"
        return f"  {head}\n      rule: {self.rule}\n      fix:  {self.fix}"


class SettingsError(Exception):
    """The settings are wrong; the message lists every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        count = "one fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"the settings have {count}; nothing was changed.\n" + "\n".join(map(str, faults)))


def shown(value: object) -> str:
    """A value as a message shows it: on one line, and short."""
    text = value if isinstance(value, str) else repr(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def from_validation(error: ValidationError, model: type[Model], root: str) -> list[Fault]:
    """The faults of a pydantic error.

    Args:
        error: what `model.model_validate` raised.
        model: the model at the root.
        root: key under which the user wrote it, such as `cluster`.
    """
    return [_fault(detail, model, root) for detail in error.errors(include_url=False)]


def path(root: str, location: Iterable[int | str]) -> str:
    """A pydantic location as users write it: `cluster.edges[0].ssh.port`."""
    text = root
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _is_tag(part) and part != "[key]":
            text += f".{part}" if part.isprintable() else f".{part!r}"
    return text


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one most likely means."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return near[0] if near else None


def _fault(detail: ErrorDetails, model: type[Model], root: str) -> Fault:
    location = detail["loc"]
    key = path(root, location)
    walked = _walk(model, location)
    value = None if walked.hidden or detail["type"] == "missing" else _shown_without(detail["input"], walked)
    described = walked.description
    match detail["type"]:
        case "extra_forbidden":
            return _unknown(key, value, str(location[-1]), walked)
        case "missing":
            return Fault(key, None, "this key is required", f"add it: {described or 'see the examples in config/'}")
        case "string_pattern_mismatch":
            rule = f"must match {detail.get('ctx', {}).get('pattern')}"
            return Fault(key, value, rule, described or "write it in that form")
        case kind:
            ours = _RULES.get(kind)
            rule = ours.format(**detail.get("ctx", {})) if ours else detail["msg"].removeprefix("Value error, ")
            return Fault(key, value, rule, described or "correct it")


def _unknown(key: str, value: str | None, name: str, walked: _Walked) -> Fault:
    if value is not None and (value.startswith(("{", "[")) or _SECRETIVE.search(name)):
        value = None  # whatever is meant, it may hold a secret
    if walked.model is not None and name in walked.model.refused:
        rule, fix = walked.model.refused[name]
        return Fault(key, value, rule, fix)
    names = sorted(walked.model.model_fields) if walked.model is not None else []
    near = nearest(name, names) or (nearest_below(name, walked.model) if walked.model is not None else None)
    fix = f"write `{near}`" if near else "remove it"
    return Fault(key, value, "this key is not known here", f"{fix}; the keys here are: {', '.join(names)}")


def nearest_below(name: str, model: type[Model]) -> str | None:
    """The key of a model's own objects that a mistyped or misplaced one most likely means, such as `ssh.user`."""
    below = {
        key: f"{field_name}.{key}"
        for field_name, field in model.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Model)
        for key in field.annotation.model_fields
    }
    near = nearest(name, below)
    return below[near] if near else None


@dataclass(frozen=True)
class _Walked:
    """What lies at a location in the models."""

    model: type[Model] | None
    """The model whose key the last part of the location is."""
    description: str
    """Of the field at the location."""
    hidden: bool
    """Whether the field, or one above it, is marked so."""
    annotation: Annotation
    """What the field may hold."""


def _walk(model: type[Model], location: Sequence[int | str]) -> _Walked:
    annotation: Annotation = model
    around: type[Model] | None = None
    description, hidden = "", False
    for part in location:
        if isinstance(part, int):
            annotation = next(_items(annotation, list), None)
        elif _is_tag(part):
            annotation = next(_tagged(annotation, part), None)
        elif part != "[key]":
            around = next(_models(annotation, through=False), None)
            if around is None:  # a key of a mapping
                annotation = next(_items(annotation, dict), None)
                continue
            field = around.model_fields.get(part)
            if field is None:
                return _Walked(around, "", hidden, None)
            annotation = field.annotation
            description = (field.description or "").replace("\n", " ")
            hidden = hidden or any(isinstance(mark, Hidden) for mark in field.metadata)
    return _Walked(around, description, hidden, annotation)


def _shown_without(value: object, walked: _Walked) -> str:
    """A value as a message shows it; of one that may hold hidden fields, only that it is there."""
    if isinstance(value, (str, int, float, type(None))):
        return shown(value)
    return "{…}" if any(map(_hides, _models(walked.annotation))) else shown(value)


def _hides(model: type[BaseModel]) -> bool:
    return any(
        any(isinstance(mark, Hidden) for mark in field.metadata) or any(map(_hides, _models(field.annotation)))
        for field in model.model_fields.values()
    )


def _is_tag(part: str) -> bool:
    """Whether a part of a location is the tag of a union's member; those begin with a NUL here."""
    return part.startswith("\0")


def _models(annotation: Annotation, *, through: bool = True) -> Iterator[type[Model]]:
    """The models that an annotation holds, itself or in a union and, with `through`, in a list or a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    if through or get_origin(annotation) not in {list, dict}:
        for part in get_args(annotation):
            yield from _models(part, through=through)


def _items(annotation: Annotation, container: type) -> Iterator[Annotation]:
    """What the lists, or the mappings, of an annotation hold."""
    if get_origin(annotation) is container:
        yield get_args(annotation)[-1]
    else:
        for part in get_args(annotation):
            yield from _items(part, container)


def _tagged(annotation: Annotation, tag: str) -> Iterator[Annotation]:
    """The member of a union that has this tag."""
    if get_origin(annotation) is Annotated and any(
        isinstance(mark, Tag) and mark.tag == tag for mark in get_args(annotation)
    ):
        yield annotation
    else:
        for part in get_args(annotation):
            yield from _tagged(part, tag)
