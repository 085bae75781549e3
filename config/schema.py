"""Writes `cluster.schema.json`, by which editors complete and check the files in `config/`.

    python -m config.schema

It describes a whole Pulumi.<stack>.yaml, and a file of shared settings, as they stand. Files name it in their first
line: `# yaml-language-server: $schema=cluster.schema.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, cast

from config.models import Cluster

PATH = Path(__file__).with_name("cluster.schema.json")

Schema = dict[str, Any]

_VALUES = ("const", "default", "enum", "required")
"""Keywords that hold values and no schemas."""
_WHOLE = (*_VALUES, "items")
_DEMANDS = ("required", "minProperties")


def schema() -> Schema:
    """The JSON Schema, draft 7, which editors know best."""
    cluster = Cluster.model_json_schema()
    definitions: Schema = cluster.pop("$defs")
    definitions["Cluster"] = cluster
    definitions = {name: _tidied(each) for name, each in definitions.items()}
    definitions |= _parts(definitions)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of rlinf-cloud-edge",
        "description": "A Pulumi.<stack>.yaml, or a file of settings that stacks share.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "config": {
                "description": "The stack's configuration.",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "rlinf-cloud-edge:cluster": {
                        "description": "The cluster.",
                        "if": {"type": "object", "required": ["extends"]},
                        "then": {"$ref": "#/$defs/ClusterPart"},
                        "else": {"$ref": "#/$defs/Cluster"},
                    },
                    "rlinf-cloud-edge:networkSecret": _secret(
                        "The network secret, from which Ray's token is derived, too. Written by: "
                        'pulumi config set --secret networkSecret "$(openssl rand -base64 32)"'
                    ),
                    "rlinf-cloud-edge:sshPrivateKey": _secret(
                        "A private key for all hosts, where neither an SSH agent nor a key file will do. Written by: "
                        "pulumi config set --secret sshPrivateKey < FILE"
                    ),
                },
                "patternProperties": {
                    "^(?!rlinf-cloud-edge:)[^:]+:.+$": {"description": "Configuration of Pulumi and its providers."},
                    "^rlinf-cloud-edge:(?!cluster$|networkSecret$|sshPrivateKey$)[A-Za-z][A-Za-z0-9_-]{0,62}$": _secret(
                        "A password or passphrase that settings name. Written by: pulumi config set --secret NAME"
                    ),
                },
            },
            "encryptionsalt": {"description": "Written by Pulumi.", "type": "string"},
            "encryptedkey": {"description": "Written by Pulumi.", "type": "string"},
            "secretsprovider": {"description": "Who encrypts the secrets.", "type": "string"},
            "environment": {"description": "Pulumi ESC environments of the stack.", "type": ["array", "object"]},
            "cluster": {
                "description": "Settings that stacks share and name as `extends`.",
                "$ref": "#/$defs/ClusterPart",
            },
        },
        "$defs": dict(sorted(definitions.items())),
    }


def render() -> str:
    """The file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _secret(description: str) -> Schema:
    return {
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "required": ["secure"],
        "properties": {"secure": {"description": "The encrypted value.", "type": "string"}},
    }


def _parts(definitions: Schema) -> Schema:
    """Definitions of what may be left out because shared settings hold it: nothing is required.

    A list is replaced as a whole, so that what is in it stays as it is.
    """
    demanding = _demanding(definitions)

    def loosen(node: Schema) -> Schema:
        loose = {key: value for key, value in node.items() if key not in _DEMANDS}
        if _target(node) in demanding:
            loose["$ref"] = f"{node['$ref']}Part"
        return loose

    parts = {f"{name}Part": _mapped(definitions[name], loosen, _WHOLE) for name in demanding}
    used = json.dumps(parts)
    return {name: part for name, part in parts.items() if name == "ClusterPart" or f'/{name}"' in used}


def _demanding(definitions: Schema) -> set[str]:
    """Names of the definitions that require something, themselves or through others."""
    direct: set[str] = set()
    refers: dict[str, set[str]] = {name: set() for name in definitions}
    for name, definition in definitions.items():

        def note(node: Schema, name: str = name) -> Schema:
            if any(key in node for key in _DEMANDS):
                direct.add(name)
            if (target := _target(node)) is not None:
                refers[name].add(target)
            return node

        _mapped(definition, note, _WHOLE)
    found = direct
    while more := {name for name, targets in refers.items() if targets & found} - found:
        found = found | more
    return found


def _target(node: Schema) -> str | None:
    """The name of the definition that a node refers to."""
    return node["$ref"].removeprefix("#/$defs/") if "$ref" in node else None


def _tidied(definition: Schema) -> Schema:
    """Without what editors have no use for: titles, and defaults that say nothing; and mappings closed."""

    def tidy(node: Schema) -> Schema:
        tidied = {key: value for key, value in node.items() if key != "title" and (key, value) != ("default", None)}
        if "patternProperties" in tidied:
            tidied.setdefault("additionalProperties", False)
        if "description" in tidied:
            tidied["description"] = " ".join(tidied["description"].split())
        return tidied

    return _mapped(definition, tidy)


def _mapped(node: Any, change: Callable[[Schema], Schema], whole: Collection[str] = _VALUES) -> Any:  # noqa: ANN401  # JSON
    """Changes every schema below a node and the node itself.

    Args:
        node: a schema, or a list of some.
        change: makes one of another; it need not go deeper.
        whole: keywords whose values stay as they are.
    """
    if isinstance(node, list):
        return [_mapped(each, change, whole) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    changed: Schema = {}
    for key, value in cast("Schema", node).items():
        if key in {"properties", "patternProperties"}:
            changed[key] = {name: _mapped(each, change, whole) for name, each in value.items()}
        else:
            changed[key] = value if key in whole else _mapped(value, change, whole)
    return change(changed)


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
