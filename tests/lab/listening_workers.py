"""Run on the head, in Ray's environment: a worker on every node that listens as RLinf's, Gloo's and NCCL's do.

Each takes free ports on all interfaces, TCP and UDP, answers whoever asks, and stays when this program ends. Prints,
as JSON, overlay address to ports.
"""

# Ray's API is untyped in part.
# pyright: basic

from __future__ import annotations

import json
import socket
import threading

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote(num_cpus=0)
class Listener:
    """A worker with two listeners."""

    def listen(self) -> dict[str, int]:
        """Opens them, and tells their ports."""
        stream = socket.create_server(("", 0))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("", 0))
        threading.Thread(target=self._accept, args=(stream,), daemon=True).start()
        threading.Thread(target=self._echo, args=(datagrams,), daemon=True).start()
        return {"tcp": stream.getsockname()[1], "udp": datagrams.getsockname()[1]}

    @staticmethod
    def _accept(stream: socket.socket) -> None:
        while True:
            connection, _ = stream.accept()
            connection.sendall(b"a shell for everyone")
            connection.close()

    @staticmethod
    def _echo(datagrams: socket.socket) -> None:
        while True:
            payload, sender = datagrams.recvfrom(2048)
            datagrams.sendto(payload, sender)


def main() -> None:
    """Starts one on every node."""
    ray.init("auto", namespace="listeners", log_to_driver=False)
    ports = {}
    for node in ray.nodes():
        if node["Alive"]:
            where = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
            address = node["NodeManagerAddress"]
            listener = Listener.options(lifetime="detached", name=address, scheduling_strategy=where).remote()
            ports[address] = ray.get(listener.listen.remote())
    print(json.dumps(ports))


if __name__ == "__main__":
    main()
