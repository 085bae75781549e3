"""RLinf workers on two hosts exchange tensors, and each tells what it got and which device carried it.

    exchange.py CONFIG

Runs on the head in the environment that Ray was started in, RAY_ADDRESS included. CONFIG is a rendered config,
taken as it is; its `actor` and `rollout` are placed where it says. The actor sends 20 MB by Gloo, the rollout
worker checks them and sends as much back, which the actor checks. The last line of standard output is JSON:

    {"seconds": 0.5, "bytes_each_way": 20000000,
     "actor": {"hostname": …, "node_rank": 0, "gloo_device": "et0", "contents_match": true,
               "device_sent_bytes": …, "device_received_bytes": …}, "rollout": {…}}

`seconds` is there and back, without the first contact. The device's counters are read around the exchange on
each host: payload that took another device would not be in them.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, cast

import ray
import torch
from omegaconf import DictConfig, OmegaConf
from rlinf.scheduler import Cluster, Worker
from rlinf.utils.placement import HybridComponentPlacement

ELEMENTS = 5_000_000
"""Elements of a tensor, float32: 20 MB."""


def payload(seed: int) -> torch.Tensor:
    """The tensor of that seed, [ELEMENTS] float32: the same on every host."""
    return torch.rand(ELEMENTS, generator=torch.Generator().manual_seed(seed))


class Peer(Worker):
    """One end of the exchange."""

    def __init__(self, peer: str) -> None:
        """Args: peer: name of the other end's worker group."""
        super().__init__()
        self._peer = peer

    def start_the_exchange(self) -> dict[str, Any]:
        """Sends the first tensor, checks the one that comes back; returns what this host saw."""
        sent, expected = payload(1), payload(2)
        self._meet()
        before = self._counters()
        started = time.perf_counter()
        self.send(sent, self._peer, 0)
        got = cast(torch.Tensor, self.recv(self._peer, 0))
        seconds = time.perf_counter() - started
        self.send(torch.zeros(1), self._peer, 0)
        return {"seconds": seconds, **self._report(before, matches=torch.equal(got, expected))}

    def answer(self) -> dict[str, Any]:
        """Checks the first tensor, sends the second; returns what this host saw."""
        sent, expected = payload(2), payload(1)
        self._meet()
        before = self._counters()
        got = cast(torch.Tensor, self.recv(self._peer, 0))
        self.send(sent, self._peer, 0)
        self.recv(self._peer, 0)  # the other end has it all: until then a part may wait in this host's socket
        return self._report(before, matches=torch.equal(got, expected))

    def _meet(self) -> None:
        """First contact of the two, which sets up RLinf's process groups in both directions."""
        if self._peer == "rollout":
            self.send(torch.zeros(1), self._peer, 0)
            self.recv(self._peer, 0)
        else:
            self.recv(self._peer, 0)
            self.send(torch.zeros(1), self._peer, 0)

    def _counters(self) -> tuple[int, int]:
        """Bytes sent and received so far by the device that Gloo uses on this host."""
        statistics = Path("/sys/class/net") / os.environ["GLOO_SOCKET_IFNAME"] / "statistics"
        return int((statistics / "tx_bytes").read_text()), int((statistics / "rx_bytes").read_text())

    def _report(self, before: tuple[int, int], *, matches: bool) -> dict[str, Any]:
        sent, received = self._counters()
        return {
            "hostname": socket.gethostname(),
            "node_rank": int(os.environ["RLINF_NODE_RANK"]),
            "gloo_device": os.environ["GLOO_SOCKET_IFNAME"],
            "contents_match": matches,
            "device_sent_bytes": sent - before[0],
            "device_received_bytes": received - before[1],
        }


def main() -> None:
    """Places both workers, runs the exchange, prints the report."""
    config = cast(DictConfig, OmegaConf.load(sys.argv[1]))
    cluster = Cluster(cluster_cfg=config.cluster)
    components = HybridComponentPlacement(config, cluster)
    # Any: RLinf gives a group the methods of its workers at run time
    actor: Any = Peer.create_group("rollout")
    rollout: Any = Peer.create_group("actor")
    for name, group in (("actor", actor), ("rollout", rollout)):
        group.launch(cluster, components.get_strategy(name), name=name)
    asked = {"actor": actor.start_the_exchange(), "rollout": rollout.answer()}
    report: dict[str, Any] = {name: result.wait()[0] for name, result in asked.items()}
    ray.shutdown()  # its processes log to our standard output: the report comes last
    print(json.dumps({"seconds": report["actor"].pop("seconds"), "bytes_each_way": ELEMENTS * 4, **report}))


if __name__ == "__main__":
    main()
