"""Compiles what Ray's processes import to bytecode, where that is: run as root, with the Python of Ray's environment.

The account that Ray runs as can't write there, so each process of each start, some ten on the head, would compile it
all for itself. That takes most of the time of a start, and a raylet gives up on an agent that is not there after 15 s.
"""

# Ray's API is untyped in part.
# pyright: basic

from __future__ import annotations

import compileall
import importlib
import sys
from pathlib import Path

import ray

# `ray start`, and the processes that it starts (`ray/_private/services.py` in Ray 2.60.0).
PROCESSES = (
    "ray.scripts.scripts",
    "ray.dashboard.dashboard",
    "ray.dashboard.agent",
    "ray._private.runtime_env.agent.main",
    "ray._private.log_monitor",
    "ray._private.workers.default_worker",
    "ray.autoscaler._private.monitor",
    "ray.util.client.server",
)


def main() -> int:
    """Compiles by importing; tells by its exit code whether that went well."""
    for name in PROCESSES:
        importlib.import_module(name)
    # Its modules are found by a look into the folder.
    return 0 if compileall.compile_dir(Path(ray.__file__).parent / "dashboard", quiet=1) else 1


if __name__ == "__main__":
    sys.exit(main())
