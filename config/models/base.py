"""The base of all settings, and the texts and numbers they are made of.

Patterns are texts, so that pydantic's own engine reads them: in Python's, `$` lets a last newline through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    StringConstraints,
    WithJsonSchema,
)


class Model(BaseModel):
    """The base of all settings: frozen, and closed to unknown keys."""

    # Most models are parts of others, which are validated with them: they need no validator of their own.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, defer_build=True)

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Keys that people try here, and why not: key to rule and fix."""


class Hidden:
    """Marks a field whose values no message repeats, since people keep tokens there."""


def number_to_text(value: object) -> object:
    """YAML reads `2.60`, `4090` or `32` as a number where a text is meant. Only the plain forms are let through."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _not_for_omegaconf(text: str) -> str:
    if "${" in text or text == "???":
        raise ValueError("must not hold `${` or be `???`: RLinf's loader would take it for a reference")
    return text


def text_or_number(pattern: str, longest: int = 4096) -> dict[str, JsonValue]:
    """What an editor is told of a text that may be written as a number."""
    return {"anyOf": [{"type": "string", "pattern": pattern, "maxLength": longest}, {"type": "number"}]}


# `strict`, since YAML's `yes` would else be 1, and a list of digits an address.
Integer = Annotated[int, Strict()]
Truth = Annotated[bool, Strict()]
Port = Annotated[Integer, Field(ge=1, le=65535)]

# EasyTier cuts a host name at 32 characters without a word; RFC 1123 gives the alphabet.
HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$", strict=True)]
# IFNAMSIZ is 16 in Linux, with the closing NUL; `.` and `..` are no names (`dev_valid_name` in the kernel).
DeviceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}$", strict=True)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# One printable line: what a script, a unit or an environment file can hold without a surprise.
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=4096)]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00-\x1f\x7f]*$", max_length=4096)]

_VERSION = r"^[0-9]+(\.[0-9]+)+$"
Version = Annotated[
    str, BeforeValidator(number_to_text), StringConstraints(pattern=_VERSION), WithJsonSchema(text_or_number(_VERSION))
]

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_ONE_LINE_OR_NOTHING = r"^[^\x00-\x1f\x7f]*$"
VariableValue = Annotated[
    str,
    BeforeValidator(number_to_text),
    StringConstraints(pattern=_ONE_LINE_OR_NOTHING, max_length=4096),
    WithJsonSchema(text_or_number(_ONE_LINE_OR_NOTHING)),
]

# What stands in RLinf's config, which OmegaConf reads.
RlinfLine = Annotated[Line, AfterValidator(_not_for_omegaconf)]
RlinfPath = Annotated[AbsolutePath, AfterValidator(_not_for_omegaconf)]
RlinfVariableValue = Annotated[VariableValue, AfterValidator(_not_for_omegaconf)]
# A comma would separate two labels in a placement.
LABEL = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
Label = Annotated[
    str,
    BeforeValidator(number_to_text),
    StringConstraints(pattern=f"^{LABEL}$"),
    WithJsonSchema(text_or_number(f"^{LABEL}$")),
]
