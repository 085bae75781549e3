"""Proves that a Ray cluster is the one that was planned: every rank alive, on its overlay address, and working.

Runs on the head with Ray's own Python, in Ray's own environment; reads the plan as JSON on standard input:
`{"address": "10.10.0.10:6379", "timeout": 180, "ray": "2.60.0", "nodes": [{"name", "rank", "ip", "device"}]}`.
A node with `"pending": true` may be missing: its owner is still to run the join script. It counts once it is there by
that; what else runs there is from before its settings said so, and about to be removed.
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
from typing import Any, TextIO

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

PAYLOAD_BYTES = 1 << 20
STARTED_WITH = Path("/etc/rlinf-cloud-edge/ray.start")


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
        "joined": "JOIN=script" in STARTED_WITH.read_text().splitlines(),
        "payload": payload[::-1],
    }


def main(result: TextIO) -> int:
    """Waits for the planned nodes, and for each one's answer.

    Args:
        result: what the line of result is written to.
    """
    plan = json.load(sys.stdin)
    deadline = time.monotonic() + plan["timeout"]
    planned = {node["ip"]: node for node in plan["nodes"]}
    ray.init(address=plan["address"], log_to_driver=False, logging_level=logging.ERROR)
    required = {ip for ip, node in planned.items() if not node.get("pending")}
    answers, joined = question(planned, required, deadline)
    missing = [describe(node) for ip, node in planned.items() if ip in required - joined]
    if missing:
        return refuse(
            f"{len(joined & required)} of {len(required)} nodes have joined Ray after {plan['timeout']} s; missing: "
            f"{', '.join(missing)}. See there: journalctl -u rlinf-ray -u rlinf-easytier (without systemd: "
            "tail /var/lib/rlinf-cloud-edge/log/*)"
        )
    strangers = {ip for ip in joined - required if ip in answers and not answers[ip]["joined"]}
    there = {ip: node for ip, node in planned.items() if ip in (required | joined) - strangers}
    wrong = [fault for ip, node in there.items() for fault in faults_of(node, answers.get(ip), plan)]
    if wrong:
        return refuse("not every node is what was planned:" + "".join(f"\n  - {fault}" for fault in wrong))
    told = " ".join(f"{node['rank']}={ip}" for ip, node in there.items())
    arrived = ",".join(node["name"] for ip, node in there.items() if ip not in required)
    print(f"{len(there)} of {len(planned)} nodes {told}{f' arrived={arrived}' if arrived else ''}", file=result)
    for ip, node in planned.items():
        if ip not in there:
            print(f"gate: {describe(node)} is pending: it has not joined yet", file=sys.stderr)
    return 0


def question(
    planned: dict[str, Any], required: set[str], deadline: float
) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """The answer of each planned node, and the nodes that have joined; complete, or as they are at the deadline.

    Complete is what has an answer of all that are required, and of all others that have joined.

    A node that was started anew is in Ray's list twice for a while, and asking its former self fails: so every
    entry of an address is asked, once, and the first answer counts.
    """
    payload = os.urandom(PAYLOAD_BYTES)
    asked: dict[Any, str] = {}
    known: set[str] = set()
    joined: set[str] = set()
    answers: dict[str, dict[str, Any]] = {}
    told = -1
    while not required | joined <= answers.keys() and time.monotonic() < deadline:
        for node in ray.nodes():
            ip = node["NodeManagerAddress"]
            if not node["Alive"] or ip not in planned or node["NodeID"] in known:
                continue
            known.add(node["NodeID"])
            joined.add(ip)
            where = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
            asked[introduce.options(scheduling_strategy=where).remote(payload)] = ip
        if len(joined) != told:
            told = len(joined)
            print(f"gate: {told} of {len(planned)} nodes have joined", file=sys.stderr, flush=True)
        if not asked:
            time.sleep(0.25)
            continue
        ready, _ = ray.wait(list(asked), num_returns=1, timeout=0.5)
        for answer in ready:
            ip = asked.pop(answer)
            try:
                told_by_node = ray.get(answer)
            except RayError as error:
                print(f"gate: {describe(planned[ip])}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
                continue
            answers[ip] = {**told_by_node, "payload": told_by_node["payload"] == payload[::-1]}
    return answers, joined


def faults_of(node: dict[str, Any], answer: dict[str, Any] | None, plan: dict[str, Any]) -> list[str]:
    """What is wrong with the answer of a node; empty when all is well."""
    name = describe(node)
    if answer is None:
        return [f"{name} joined, but ran no task within {plan['timeout']} s"]
    faults: list[str] = []
    if not answer["payload"]:
        faults.append(f"{name} sent another payload back")
    if answer["rank"] != str(node["rank"]):
        faults.append(f"{name} has RLINF_NODE_RANK={answer['rank']}")
    if answer["device"] != node["device"] or not answer["has_device"]:
        faults.append(f"{name} has no device {node['device']} (RLINF_COMM_NET_DEVICES={answer['device']})")
    if answer["ray"] != plan["ray"] or answer["python"] != platform.python_version():
        faults.append(
            f"{name} runs Ray {answer['ray']} and Python {answer['python']}; "
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
    # Ray itself prints to standard output, such as the log of a node that died; that is no result.
    with os.fdopen(os.dup(1), "w") as standard_output:
        os.dup2(2, 1)
        sys.exit(main(standard_output))
