"""The account of a lab from outside its network: a port of this machine that leads to it, for tests and tools."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from lab import network, topology

_CLONE_NEWNET = 0x40000000


@contextmanager
def endpoint(lab: str) -> Generator[str, None, None]:
    """The URL at which this process reaches a lab's account, for the length of a block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, lab), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        # What waits in accept() is not told that its socket is closed.
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, lab: str) -> None:
    # A thread's own network namespace; the others stay where they are.
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(network.path(topology.operator_namespace(lab)), os.O_RDONLY)
    try:
        if libc.setns(handle, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(handle)
    while True:
        try:
            near, _ = server.accept()
            far = socket.create_connection(("127.0.0.1", topology.AWS_PORT))
        except OSError:
            return
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
