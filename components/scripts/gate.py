"""Proves that a Ray cluster is the one that was planned: every rank alive, on its overlay address, and working.

Runs on the head with Ray's own Python, in Ray's own environment; reads the plan as JSON on standard input:
`{"address": "10.10.0.10:6379", "timeout": 180, "ray": "2.60.0", "nodes": [{"name", "rank", "ip", "device"}]}`.
Membership alone proves nothing, so each node runs a task that says who it is and sends back a payload of 1 MiB.
Ends with one line of result on standard output, or with what is missing on standard error and exit code 1.
"""

# Ray's API is untyped in part.
# pyright: basic

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

PAYLOAD_BYTES = 1 << 20


@ray.remote(num_cpus=0, max_retries=0)
def introduce(payload: bytes) -> dict[str, Any]:
    """Who a node is, told by a worker process on it; the payload comes back reversed."""
    device = os.environ.get("RLINF_COMM_NET_DEVICES", "")
    return {
        "rank": os.environ.get("RLINF_NODE_RANK"),
        "device": device,
        "has_device": Path(f"/sys/class/net/{device}").is_dir(),
        "ray": ray.__version__,
        "python": platform.python_version(),
        "payload": payload[::-1],
    }


def main() -> int:
    """Waits for the planned nodes and questions each."""
    plan = json.load(sys.stdin)
    deadline = time.monotonic() + plan["timeout"]
    planned = {node["ip"]: node for node in plan["nodes"]}
    ray.init(address=plan["address"], log_to_driver=False, logging_level=logging.ERROR)
    joined = wait_for_nodes(planned, deadline)
    missing = [describe(node) for ip, node in planned.items() if ip not in joined]
    if missing:
        return refuse(
            f"{len(joined)} of {len(planned)} nodes have joined Ray after {plan['timeout']} s; missing: "
            f"{', '.join(missing)}. See there: journalctl -u rlinf-ray -u rlinf-easytier"
        )
    wrong = question(planned, joined, plan, deadline)
    if wrong:
        return refuse("not every node is what was planned:" + "".join(f"\n  - {fault}" for fault in wrong))
    told = " ".join(f"{node['rank']}={ip}" for ip, node in planned.items())
    print(f"{len(planned)} of {len(planned)} nodes {told}")
    return 0


def wait_for_nodes(planned: dict[str, Any], deadline: float) -> dict[str, str]:
    """Overlay address to Ray's node id, for the planned nodes alive; complete, or as it is at the deadline."""
    told = -1
    while True:
        alive = {node["NodeManagerAddress"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
        joined = {ip: alive[ip] for ip in planned if ip in alive}
        if len(joined) != told:
            told = len(joined)
            print(f"gate: {told} of {len(planned)} nodes have joined", file=sys.stderr, flush=True)
        if len(joined) == len(planned) or time.monotonic() > deadline:
            return joined
        time.sleep(0.25)


def question(planned: dict[str, Any], joined: dict[str, str], plan: dict[str, Any], deadline: float) -> list[str]:
    """What is wrong with the answers of the nodes; empty when all is well."""
    payload = os.urandom(PAYLOAD_BYTES)
    answers = {
        ip: introduce.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node_id, soft=False)).remote(
            payload
        )
        for ip, node_id in joined.items()
    }
    faults: list[str] = []
    for ip, answer in answers.items():
        node = planned[ip]
        try:
            told = ray.get(answer, timeout=max(1.0, deadline - time.monotonic()))
        except GetTimeoutError:
            faults.append(f"{describe(node)} joined, but ran no task within {plan['timeout']} s")
            continue
        except RayError as error:
            faults.append(f"{describe(node)} failed its task: {str(error).splitlines()[0]}")
            continue
        if told["payload"] != payload[::-1]:
            faults.append(f"{describe(node)} sent another payload back")
        if told["rank"] != str(node["rank"]):
            faults.append(f"{describe(node)} has RLINF_NODE_RANK={told['rank']}")
        if told["device"] != node["device"] or not told["has_device"]:
            faults.append(f"{describe(node)} has no device {node['device']} (RLINF_COMM_NET_DEVICES={told['device']})")
        if told["ray"] != plan["ray"] or told["python"] != platform.python_version():
            faults.append(
                f"{describe(node)} runs Ray {told['ray']} and Python {told['python']}; "
                f"the head runs Ray {plan['ray']} and Python {platform.python_version()}"
            )
    return faults


def describe(node: dict[str, Any]) -> str:
    """A node as messages name it."""
    return f"{node['name']} (rank {node['rank']}, {node['ip']})"


def refuse(message: str) -> int:
    """Says why the gate stays shut."""
    print(f"gate: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
