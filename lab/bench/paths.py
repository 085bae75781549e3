"""What the overlay carries: directly from edge to head, against by way of the bootstrap."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lab.bench.figure import Figure
from lab.bench.worlds import stack_with
from lab.polling import wait_for
from lab.progress import step
from lab.stack import Stack

_HEAD, _EDGE, _HEAD_IP, _PORT = "cloud-1", "edge-1", "10.10.0.10", 21500
_SECONDS, _ROUNDS = 4, 3

_SINK = """
import socket, sys, time
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
connection, _ = server.accept()
taken, started = 0, time.monotonic()
while chunk := connection.recv(1 << 20):
    taken += len(chunk)
print(taken * 8 / 1e6 / (time.monotonic() - started))
"""
_SOURCE = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
block, deadline = bytes(1 << 20), time.monotonic() + float(sys.argv[3])
while time.monotonic() < deadline:
    connection.sendall(block)
"""


def throughput() -> Iterator[Figure]:
    """TCP from an edge behind NAT to the head, in Mbit/s, over both paths of the same overlay."""
    with stack_with(edges=1) as stack:
        measured: dict[str, float] = {}
        for name, edit in (("direct", _as_it_is), ("relayed", _by_the_bootstrap)):
            with step(f"Throughput of an edge, {name}"):
                stack.change(edit)
                stack.up()
                measured[name] = statistics.median(_measure(stack) for _ in range(_ROUNDS))
        yield Figure(
            "edge → head, against relayed by the bootstrap",
            measured["direct"] / measured["relayed"], 1.3, "×",
            f"{measured['direct']:.0f} : {measured['relayed']:.0f} Mbit/s, medians of {_ROUNDS}", at_least=True,
        )  # fmt: skip


def _as_it_is(cluster: dict[str, Any]) -> None:
    pass


def _by_the_bootstrap(cluster: dict[str, Any]) -> None:
    cluster["cloud"][0].pop("public_address", None)
    cluster["overlay"]["flags"] = {"disable_p2p": True}


def _measure(stack: Stack) -> float:
    with ThreadPoolExecutor(1) as pool:
        sink = pool.submit(stack.lab.exec, _HEAD, "python3", "-c", _SINK, str(_PORT))
        if wait_for(lambda: _listens(stack), 20) is None:
            raise RuntimeError(f"nothing listens on {_HEAD}: {sink.result().stderr}")
        sent = stack.lab.exec(_EDGE, "python3", "-c", _SOURCE, _HEAD_IP, str(_PORT), str(_SECONDS))
        if sent.returncode != 0:
            raise RuntimeError(f"{_EDGE} sends nothing to {_HEAD_IP}: {sent.stderr}")
        return float(sink.result().stdout)


def _listens(stack: Stack) -> bool | None:
    return True if f":{_PORT} " in stack.lab.exec(_HEAD, "ss", "-Hltn").stdout else None
