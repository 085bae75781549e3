"""The guide's example as settings: one bootstrap, one 4-GPU cloud node, one edge behind NAT."""

from __future__ import annotations

import copy
from typing import Any

# Public keys made for these tests; no machine has them.
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"

_GUIDE: dict[str, Any] = {
    "ssh": {"user": "debian"},
    "overlay": {},
    "bootstrap": {"overlay_ip": "10.10.0.1", "ssh": {"address": "203.0.113.5", "host_key": HOST_KEY}},
    "cloud": [
        {
            "name": "cloud-1",
            "overlay_ip": "10.10.0.10",
            "public_address": "203.0.113.10",
            "gpus": 4,
            "ssh": {"address": "203.0.113.10", "host_key": HOST_KEY},
        }
    ],
    "edges": [
        {
            "name": "edge-1",
            "overlay_ip": "10.10.0.11",
            "ssh": {"address": "192.168.1.20", "jump": "bootstrap", "host_key": HOST_KEY},
        }
    ],
    "rlinf": {
        "component_placement": {
            "actor": {"node_group": "cloud", "placement": "0-3"},
            "rollout": {"node_group": "edge", "placement": "0-0"},
            "env": {"node_group": "edge", "placement": "0-0"},
        }
    },
}


def guide() -> dict[str, Any]:
    """A fresh copy of the guide's example, to change as a test needs."""
    return copy.deepcopy(_GUIDE)


def guide_with_edges(count: int) -> dict[str, Any]:
    """The guide's example with that many edges, each behind a NAT of its own."""
    settings = guide()
    settings["overlay"] = {"cidr": "10.10.0.0/16"}
    settings["edges"] = [
        {
            "name": f"edge-{number}",
            "overlay_ip": f"10.10.{1 + number // 250}.{1 + number % 250}",
            "ssh": {
                "address": f"192.168.{number // 250}.{1 + number % 250}",
                "jump": "bootstrap",
                "host_key": HOST_KEY,
            },
        }
        for number in range(1, count + 1)
    ]
    return settings


def direct() -> dict[str, Any]:
    """The guide's hosts in direct mode, where each reaches the other at its own address."""
    settings = guide()
    del settings["overlay"], settings["bootstrap"]
    settings["device"] = "eth0"
    (cloud,), (edge,) = settings["cloud"], settings["edges"]
    for host in (cloud, edge):
        del host["overlay_ip"]
    del cloud["public_address"], edge["ssh"]["jump"]
    cloud["ssh"]["address"] = "192.0.2.10"
    edge["ssh"]["address"] = "192.0.2.20"
    edge["device"] = "enp1s0"
    return settings
