"""Faults in the settings: each names the key, the value, the rule and the fix; all are reported at once.

Pydantic finds what is wrong with a single field; this module puts that in the project's words. Values of `env`
are never repeated, since people keep tokens there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

_LONGEST_VALUE = 80


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


def from_validation(error: ValidationError, model: type[BaseModel], root: str) -> list[Fault]:
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
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text


def _fault(detail: ErrorDetails, model: type[BaseModel], root: str) -> Fault:
    location = [part for part in detail["loc"] if part != "[key]"]
    key = path(root, location)
    secret = "env" in location
    value = None if secret or detail["type"] == "missing" else shown(detail["input"])
    names, described = _neighbours(model, location)
    match detail["type"]:
        case "extra_forbidden":
            name = str(location[-1])
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            known = ", ".join(sorted(names))
            fix = f"write `{near[0]}`" if near else "remove it"
            return Fault(key, value, "this key is not known here", f"{fix}; the keys here are: {known}")
        case "missing":
            return Fault(key, None, "this key is required", f"add it: {described or 'see the examples in config/'}")
        case "string_pattern_mismatch":
            rule = f"must match {detail.get('ctx', {}).get('pattern')}"
            return Fault(key, value, rule, described or "write it in that form")
        case _:
            return Fault(key, value, detail["msg"], described or "correct it")


def _neighbours(model: type[BaseModel], location: Sequence[int | str]) -> tuple[list[str], str]:
    """The keys known beside the last part of a location, and the description of that part."""
    here: type[BaseModel] | None = model
    names: list[str] = []
    description = ""
    for part in location:
        if isinstance(part, int):
            continue
        if here is None:
            return names, description
        names = list(here.model_fields)
        field = here.model_fields.get(part)
        if field is None:
            return names, ""
        description = (field.description or "").replace("\n", " ")
        here = _model_of(field)
    return names, description


def _model_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model a field holds, itself or in a list, a mapping or a union."""
    waiting: list[Any] = [field.annotation]
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
        waiting += get_args(annotation)
    return None
