"""Every node sums a tensor with all others by Gloo on the CPU, over the device that its settings name.

    all_reduce.py NODES

Runs on the head in the environment that Ray was started in. On each of the nodes a task makes a process group of
torch, whose Gloo takes the device of RLINF_COMM_NET_DEVICES, as RLinf has it do, and adds up 20 MB of its rank. Last
comes a line of JSON on standard output, in the order of ranks:

    [{"rank": 0, "device": "et0", "device_is_there": true, "sum": 3.0, "device_sent_bytes": …}, …]
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import ray
import torch
import torch.distributed as dist
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ELEMENTS = 5_000_000
"""Elements of the tensor, float32: 20 MB."""


@ray.remote(num_cpus=0, max_retries=0)
def add_up(rank: int, nodes: int, address: str) -> dict[str, Any]:
    """One node's part.

    Args:
        rank: its rank in the process group.
        nodes: how many take part.
        address: `host:port` on the head at which they meet.
    """
    device = os.environ["RLINF_COMM_NET_DEVICES"]
    os.environ["GLOO_SOCKET_IFNAME"] = device
    sent = Path("/sys/class/net") / device / "statistics" / "tx_bytes"
    dist.init_process_group(
        "gloo", init_method=f"tcp://{address}", rank=rank, world_size=nodes, timeout=timedelta(seconds=60)
    )
    before = int(sent.read_text())
    tensor = torch.full((ELEMENTS,), float(rank))
    dist.all_reduce(tensor)
    result = {
        "rank": int(os.environ["RLINF_NODE_RANK"]),
        "device": device,
        "device_is_there": sent.exists(),
        "sum": float(tensor[0]) if bool((tensor == tensor[0]).all()) else None,
        "device_sent_bytes": int(sent.read_text()) - before,
    }
    dist.destroy_process_group()
    return result


def main() -> None:
    """Has each node add up, and prints what they say."""
    ray.init("auto", logging_level=40, log_to_driver=False)
    count = int(sys.argv[1])
    nodes = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: node["NodeManagerAddress"])
    if len(nodes) != count:
        raise SystemExit(f"{len(nodes)} nodes are alive, not {count}")
    head = os.environ["RAY_ADDRESS"].rpartition(":")[0]
    asked = [
        add_up.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)).remote(
            rank, count, f"{head}:29400"
        )
        for rank, node in enumerate(nodes)
    ]
    report = ray.get(asked)
    ray.shutdown()
    print(json.dumps(sorted(report, key=lambda told: told["rank"])))


if __name__ == "__main__":
    main()
