"""Pulumi's generated protobuf modules, without the rest of Pulumi's SDK.

Importing `pulumi.runtime.proto` in the ordinary way first imports the whole SDK. A plugin is started by every
`pulumi` command, so the package folders are registered here as empty packages and only the generated modules run.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import TYPE_CHECKING

if not TYPE_CHECKING and "pulumi" not in sys.modules:
    _spec = importlib.util.find_spec("pulumi")
    _path = _spec.submodule_search_locations[0]
    for _name, _folder in (
        ("pulumi", _path),
        ("pulumi.runtime", f"{_path}/runtime"),
        ("pulumi.runtime.proto", f"{_path}/runtime/proto"),
    ):
        _package = types.ModuleType(_name)
        _package.__path__ = [_folder]
        sys.modules[_name] = _package

from pulumi.runtime.proto import engine_pb2, plugin_pb2, provider_pb2, status_pb2

__all__ = ["engine_pb2", "plugin_pb2", "provider_pb2", "status_pb2"]
