"""The provider's schema, from the shapes of its resources."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .shapes import (
    CONNECTION,
    PROXY,
    RESOURCES,
    RUN_FUNCTION,
    RUN_INPUTS,
    RUN_OUTPUTS,
    Kind,
    ListOf,
    MapOf,
    Property,
    ResourceType,
    Shape,
)

Json = dict[str, Any]

_REFERENCES = {
    "any": "pulumi.json#/Any",
    "archive": "pulumi.json#/Archive",
    "asset or archive": "pulumi.json#/Asset",
}
_LOGGING = {
    "type": "string",
    "enum": [{"value": value} for value in ("stdout", "stderr", "stdoutAndStderr", "none")],
}


def schema(version: str) -> str:
    """The schema of this version, as JSON."""
    return json.dumps(
        {
            "name": "command",
            "displayName": "Command",
            "version": version,
            "description": "Runs commands on this machine and on others: a substitute for Pulumi's own provider.",
            "config": {},
            "types": {
                "command:local:Logging": _LOGGING,
                "command:remote:Logging": _LOGGING,
                **{shape.token: _object(shape.properties, "remote") for shape in (CONNECTION, PROXY)},
            },
            "provider": {},
            "resources": {token: _resource(resource) for token, resource in RESOURCES.items()},
            "functions": {RUN_FUNCTION: _function()},
        }
    )


def _resource(resource: ResourceType) -> Json:
    module = resource.token.split(":")[1]
    result: Json = {
        "properties": _properties(resource.state.properties, module),
        "required": _required(resource.state),
        "inputProperties": _properties(resource.inputs.properties, module),
        "requiredInputs": _required(resource.inputs),
    }
    if resource.deprecated:
        result["deprecationMessage"] = resource.deprecated
    return result


def _function() -> Json:
    return {
        "inputs": _object(RUN_INPUTS.properties, "local"),
        "outputs": _object(RUN_OUTPUTS.properties, "local"),
    }


def _object(properties: Iterable[Property], module: str) -> Json:
    properties = tuple(properties)
    return {
        "type": "object",
        "properties": _properties(properties, module),
        "required": [each.name for each in properties if each.required],
    }


def _required(shape: Shape) -> list[str]:
    return [each.name for each in shape.properties if each.required]


def _properties(properties: Iterable[Property], module: str) -> Json:
    return {each.name: _property(each, module) for each in properties}


def _property(each: Property, module: str) -> Json:
    if each.name == "logging":
        return {"$ref": f"#/types/command:{module}:Logging"}
    result = _type(each.kind)
    if each.default is not None:
        result["default"] = each.default
    if each.secret:
        result["secret"] = True
    if each.replaces:
        result["replaceOnChanges"] = True
    return result


def _type(kind: Kind) -> Json:
    match kind:
        case ListOf():
            return {"type": "array", "items": _type(kind.element)}
        case MapOf():
            return {"type": "object", "additionalProperties": _type(kind.element)}
        case Shape():
            return {"$ref": f"#/types/{kind.token}"}
        case _:
            return {"$ref": _REFERENCES[kind]} if kind in _REFERENCES else {"type": kind}
