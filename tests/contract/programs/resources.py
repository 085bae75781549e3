"""The resources of resources.json: name, type, arguments, options; secrets are {"secret": ...}."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pulumi
import pulumi_command

TYPES: dict[str, Any] = {"remote": pulumi_command.remote.Command, "copy": pulumi_command.remote.CopyToRemote}


def value(given: Any) -> Any:
    """An argument as the SDK takes it."""
    if isinstance(given, dict) and given.keys() == {"secret"}:
        return pulumi.Output.secret(given["secret"])
    if isinstance(given, dict) and given.keys() == {"text"}:
        return pulumi.StringAsset(given["text"])
    if isinstance(given, dict):
        return {key: value(each) for key, each in given.items()}
    return given


for name, (kind, arguments, options) in json.loads(pathlib.Path("resources.json").read_text()).items():
    resource = TYPES[kind](name, **value(arguments), opts=pulumi.ResourceOptions(**options))
    if kind == "remote":
        pulumi.export(name, resource.stdout)
