"""Runs the program on settings of N edges under Pulumi's mocks, and prints the seconds it took: `… N`.

The mocks stand for the engine and the `command` plugin; no host is reached.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import time
from typing import Any, NoReturn, cast

import pulumi
from pulumi.runtime import mocks, stack

from lab.paths import CLONE


class _Engine(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs = cast("dict[Any, Any]", args.inputs)  # pyright: ignore[reportUnknownMemberType]  # the SDK leaves it open
        return f"{args.name}-id", {**inputs, "stdout": f"done {args.name}\n"}

    def call(self, args: mocks.MockCallArgs) -> NoReturn:
        raise AssertionError(f"the program calls {args.token}, which it has no need for")


_HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


def settings(edges: int) -> dict[str, Any]:
    """A bootstrap, a cloud node and that many edges behind the bootstrap."""
    return {
        "overlay": {"cidr": "10.10.0.0/16"},
        "bootstrap": {"overlay_ip": "10.10.0.1", "ssh": {"address": "203.0.113.5", "host_key": _HOST_KEY}},
        "cloud": [
            {"name": "cloud-1", "overlay_ip": "10.10.0.2", "ssh": {"address": "203.0.113.6", "host_key": _HOST_KEY}}
        ],
        "edges": [
            {
                "name": f"edge-{index}",
                "overlay_ip": f"10.10.{1 + index // 200}.{1 + index % 200}",
                "ssh": {
                    "address": f"192.168.{index // 200}.{1 + index % 200}",
                    "jump": "bootstrap",
                    "host_key": _HOST_KEY,
                },
            }
            for index in range(edges)
        ],
        "rlinf": {"component_placement": {"actor": {"node_group": "edge", "placement": "all"}}},
    }


def main() -> None:
    """Runs the program once."""
    cluster = settings(int(sys.argv[1]))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    mocks.set_mocks(_Engine(), project="rlinf-cloud-edge", stack="bench", preview=True)
    pulumi.runtime.set_all_config(
        {"rlinf-cloud-edge:cluster": json.dumps(cluster), "rlinf-cloud-edge:networkSecret": "not-a-secret-at-all"},
        ["rlinf-cloud-edge:networkSecret"],
    )
    started = time.monotonic()

    async def program() -> None:
        runpy.run_path(str(CLONE / "__main__.py"), run_name="__main__")
        await stack.wait_for_rpcs()

    loop.run_until_complete(program())
    print(time.monotonic() - started)


if __name__ == "__main__":
    main()
