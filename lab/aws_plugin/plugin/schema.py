"""The provider's schema, from the shapes of its resources and functions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .functions import Function
from .resource import Resource
from .shapes import Block, Kind, ListOf, MapOf, Property

Json = dict[str, Any]


def schema(version: str, resources: Iterable[Resource], functions: Iterable[Function]) -> str:
    """The schema of this version, as JSON."""
    types: Json = {}
    texts = {name: {"type": "string"} for name in ("region", "profile", "accessKey", "secretKey", "token")}
    return json.dumps(
        {
            "name": "aws",
            "displayName": "AWS",
            "version": version,
            "description": "EC2 through a given endpoint: a substitute for Pulumi's own provider.",
            "config": {"variables": texts},
            "provider": {"inputProperties": texts},
            "resources": {each.shape.token: _resource(each, types) for each in resources},
            "functions": {
                each.arguments.token: {"inputs": _object(each.arguments.properties, types)} for each in functions
            },
            "types": types,
        }
    )


def _resource(resource: Resource, types: Json) -> Json:
    shape = resource.shape
    outputs = [each.name for each in shape.properties if each.required or each.output or each.computed]
    return {
        "properties": _properties(shape.properties, types),
        "required": outputs,
        "inputProperties": _properties(shape.inputs, types),
        "requiredInputs": [each.name for each in shape.inputs if each.required],
    }


def _object(properties: Iterable[Property], types: Json) -> Json:
    properties = tuple(properties)
    return {
        "type": "object",
        "properties": _properties(properties, types),
        "required": [each.name for each in properties if each.required],
    }


def _properties(properties: Iterable[Property], types: Json) -> Json:
    return {each.name: {**_type(each.kind, types), **_notes(each)} for each in properties}


def _notes(each: Property) -> Json:
    notes: Json = {} if each.default is None else {"default": each.default}
    return {**notes, "replaceOnChanges": True} if each.replaces else notes


def _type(kind: Kind, types: Json) -> Json:
    match kind:
        case ListOf():
            return {"type": "array", "items": _type(kind.element, types)}
        case MapOf():
            return {"type": "object", "additionalProperties": {"type": "string"}}
        case Block():
            types.setdefault(kind.token, _object(kind.properties, types))
            return {"$ref": f"#/types/{kind.token}"}
        case _:
            return {"type": kind}
