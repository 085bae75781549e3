"""The shapes of the provider's resources: properties, their types, defaults, and which of them are secret.

One description serves the schema, the checks, the defaults and the secrets. Names of Go types appear because the
original's messages about wrong inputs carry them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Primitive: TypeAlias = Literal["string", "number", "integer", "boolean", "any", "asset or archive", "archive"]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of `element`s."""

    element: Kind


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys and `element`s as values."""

    element: Kind


@dataclass(frozen=True, slots=True)
class Property:
    """One property. `replaces`: adding or removing it as a whole replaces the resource."""

    name: str
    kind: Kind
    required: bool = False
    secret: bool = False
    default: str | float | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """An object with known properties. `token` is its type token where the schema names it."""

    go_name: str
    properties: tuple[Property, ...]
    token: str = ""
    by_name: dict[str, Property] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.properties})


Kind: TypeAlias = "Primitive | ListOf | MapOf | Shape"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A resource: the shape of its inputs, and of the outputs it adds to them."""

    token: str
    inputs: Shape
    state: Shape
    updatable: bool = True
    deprecated: str = ""


def _connection(proxy: Shape | None) -> tuple[Property, ...]:
    properties = (
        Property("user", "string", default="root"),
        Property("password", "string", secret=True),
        Property("host", "string", required=True),
        Property("port", "number", default=22.0),
        Property("privateKey", "string", secret=True),
        Property("privateKeyPassword", "string", secret=True),
        Property("agentSocketPath", "string"),
        Property("dialErrorLimit", "integer", default=10.0),
        Property("perDialTimeout", "integer", default=15.0),
        Property("hostKey", "string"),
    )
    return (*properties, Property("proxy", proxy)) if proxy else properties


PROXY = Shape("remote.ProxyConnection", _connection(None), "command:remote:ProxyConnection")
CONNECTION = Shape("remote.Connection", _connection(PROXY), "command:remote:Connection")

_TRIGGERS = Property("triggers", ListOf("any"), replaces=True)
_CONNECTION = Property("connection", CONNECTION, required=True, secret=True)
_COMMANDS = (
    _TRIGGERS,
    Property("create", "string"),
    Property("update", "string"),
    Property("delete", "string"),
)
_OUTPUTS = (Property("stdout", "string", required=True), Property("stderr", "string", required=True))
_LOCAL = (
    Property("stdin", "string"),
    Property("logging", "string"),
    Property("interpreter", ListOf("string")),
    Property("dir", "string"),
    Property("environment", MapOf("string")),
    Property("assetPaths", ListOf("string")),
    Property("archivePaths", ListOf("string")),
    Property("addPreviousOutputInEnv", "boolean"),
)
_LOCAL_OUTPUTS = (
    *_OUTPUTS,
    Property("assets", MapOf("asset or archive")),
    Property("archive", "archive"),
)
_REMOTE = (
    Property("stdin", "string"),
    Property("logging", "string"),
    _CONNECTION,
    Property("environment", MapOf("string")),
    Property("addPreviousOutputInEnv", "boolean"),
)


def _resource(
    token: str,
    go_name: str,
    inputs: tuple[Property, ...],
    outputs: tuple[Property, ...] = (),
    *,
    updatable: bool = True,
    deprecated: str = "",
) -> ResourceType:
    return ResourceType(
        token,
        Shape(f"{go_name}Inputs", inputs),
        Shape(f"{go_name}Outputs", (*inputs, *outputs)),
        updatable,
        deprecated,
    )


LOCAL_COMMAND = _resource("command:local:Command", "local.Command", (*_COMMANDS, *_LOCAL), _LOCAL_OUTPUTS)
REMOTE_COMMAND = _resource("command:remote:Command", "remote.Command", (*_COMMANDS, *_REMOTE), _OUTPUTS)
COPY_TO_REMOTE = _resource(
    "command:remote:CopyToRemote",
    "remote.CopyToRemote",
    (
        _CONNECTION,
        _TRIGGERS,
        Property("source", "asset or archive", required=True),
        Property("remotePath", "string", required=True),
    ),
)
COPY_FILE = _resource(
    "command:remote:CopyFile",
    "remote.CopyFile",
    (
        _CONNECTION,
        Property("triggers", ListOf("any")),
        Property("localPath", "string", required=True),
        Property("remotePath", "string", required=True),
    ),
    updatable=False,
    deprecated="Use the CopyToRemote resource.",
)
RESOURCES = {each.token: each for each in (LOCAL_COMMAND, REMOTE_COMMAND, COPY_TO_REMOTE, COPY_FILE)}

RUN_FUNCTION = "command:local:run"
RUN_INPUTS = Shape("local.RunInputs", (*_LOCAL, Property("command", "string", required=True)))
RUN_OUTPUTS = Shape("local.RunOutputs", (*RUN_INPUTS.properties, *_LOCAL_OUTPUTS))
