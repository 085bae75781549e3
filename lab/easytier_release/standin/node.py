"""Runs one EasyTier node until a signal or a fault, and puts its device back if someone removes it.

Exit codes are upstream's: 0 after SIGTERM and SIGINT, 1 after a fault.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import NoReturn, cast

from . import tables
from .extension import Core, Node
from .log import Log

STOP_LIMIT = 3.0
"""Seconds the core may take to stop; then the process ends without it, and the kernel removes the device."""

CHECK_INTERVAL = 1.0
"""Seconds between looks at the core's state and at the device, whose removal the core does not report."""

QUIET_EVENTS = frozenset({"Connecting", "ConnectError", "ConnectionAccepted", "ConnectionError", "PortForwardAdded"})
"""Events that come every second while a peer is away: written at debug level."""


class NodeError(Exception):
    """The node can't run; the text says why."""


class Runner:
    """One node, from start to exit, and the answers about it for the RPC portal."""

    def __init__(self, core: Core, config: Mapping[str, object], log: Log) -> None:
        self._core = core
        self._config = config
        self._log = log
        self._node: Node | None = None
        self._signals: queue.SimpleQueue[str] = queue.SimpleQueue()

    def answer(self, question: str) -> object:
        """Answers `peer`, `route`, `pairs` or `node` from the core's snapshots.

        Raises:
            LookupError: no node runs yet, or there is no such question.
        """
        node = self._node
        if node is None:
            raise LookupError("no running instance")
        try:
            info, routes, peers = node.node_info(), node.routes(), node.peers()
        except RuntimeError as error:
            raise LookupError(str(error)) from error
        match question:
            case "peer":
                return tables.peer_table(info, routes, peers)
            case "route":
                return tables.route_table(info, routes, peers)
            case "pairs":
                return tables.pairs(routes, peers)
            case "node":
                return info
            case _:
                raise LookupError(f"no such question: {question}")

    def run(self) -> str:
        """Runs until SIGTERM or SIGINT; to be called in the main thread.

        Returns:
            The signal's name.

        Raises:
            NodeError: the node could not start, or stopped by itself.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _frame: self._signals.put(signal.Signals(received).name))
        while True:
            node = self._start()
            self._node = node
            device = _device_index(self._device) if self._has_device else None
            try:
                end = self._wait(node, device)
            finally:
                self._node = None
            self._stop(node)
            if isinstance(end, NodeError):
                raise end
            if end is not None:
                return end
            self._log("warn", f"device {self._device} is gone: starting again")

    @property
    def _device(self) -> str:
        return str(cast(Mapping[str, object], self._config["flags"]).get("dev_name") or "")

    @property
    def _has_device(self) -> bool:
        return bool(self._device and _device_index(self._device))

    def _start(self) -> Node:
        try:
            node = self._core.Node(self._config)
        except ValueError as error:
            raise NodeError(f"failed to parse config: {error}") from error
        try:
            node.start()
        except RuntimeError as error:
            raise NodeError(node.latest_error() or str(error)) from error
        threading.Thread(target=self._watch, args=(node,), name="events", daemon=True).start()
        return node

    def _wait(self, node: Node, device: int | None) -> str | NodeError | None:
        """Waits for the end: a signal, a fault, or none when the device was removed."""
        while True:
            try:
                return self._signals.get(timeout=CHECK_INTERVAL)
            except queue.Empty:
                if node.state() != "Running":
                    return NodeError(node.latest_error() or "the node stopped by itself")
                if device and _device_index(self._device) != device:
                    return None

    def _watch(self, node: Node) -> None:
        """Writes the core's events to the log as long as it runs."""
        while node.state() == "Running":
            if (event := node.next_event(None)) is not None:
                self._report(event)

    def _report(self, event: Mapping[str, object]) -> None:
        for name, payload in event.items():
            if name in {"TunDeviceError", "ListenerAddFailed", "ListenerAcceptFailed"}:
                level = "error"
            else:
                level = "debug" if name in QUIET_EVENTS else "info"
            self._log(level, f"{name} {json.dumps(payload, ensure_ascii=False)}")

    def _stop(self, node: Node) -> None:
        stopper = threading.Thread(target=node.stop, name="stop", daemon=True)
        stopper.start()
        stopper.join(STOP_LIMIT)
        if stopper.is_alive():
            self._log("warn", f"the core did not stop within {STOP_LIMIT:.0f} s: ending without it")


def leave(code: int) -> NoReturn:
    """Ends the process at once: threads of the core that are still busy can't hold it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _device_index(name: str) -> int | None:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return None
