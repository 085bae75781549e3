"""The oracle's answers, from a real `Cluster` on a real Ray: what the oracle's stand-ins are compared with.

    real_cluster.py < QUESTIONS > ANSWERS

Questions and answers are those of `oracle.py`; all questions have the same machines. Each machine is a Ray node of
its own on this one, on a loopback address, with token authentication. RLinf runs unchanged: it connects, probes each
node by an actor on it and launches its managers. What this machine lacks is there as the Python modules that RLinf
asks: `dpctl`, of Intel's driver, reports as many accelerators on each node as the question says; `pyrealsense2` one
camera, whose serial number is "20"; and to `icmplib` every address answers.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, cast

# Before Ray is imported: it reads this once.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))

import ray
from omegaconf import DictConfig, OmegaConf
from oracle import plain, report
from rlinf.scheduler import Cluster

MODULES = {
    "dpctl": """
import os


class SyclContext:
    def __init__(self, selector):
        self.device_count = int(os.environ["ACCELERATORS"])


class SyclDevice:
    def __init__(self, selector):
        self.name = "Any 1"
""",
    "pyrealsense2": """
class camera_info:
    serial_number = 1


class Device:
    def get_info(self, info):
        return "20"


class context:
    devices = [Device()]
""",
    "icmplib": """
class Answer:
    is_alive = True


def ping(address, count, timeout):
    return Answer()
""",
}


@contextmanager
def ray_on(machines: list[Mapping[str, Any]], folder: Path) -> Iterator[None]:
    """A Ray cluster with a node for each machine."""
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    address = f"{machines[0]['ip']}:{free_port()}"
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        for machine in machines:
            nodes.append(start_node(machine, address, folder))
            if machine is machines[0]:
                wait_for(1, address, nodes)
        wait_for(len(nodes), address, nodes)
        os.environ["RAY_ADDRESS"] = address
        yield
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait()


def start_node(machine: Mapping[str, Any], address: str, folder: Path) -> subprocess.Popen[bytes]:
    """`ray start` of one machine."""
    ip, port = address.split(":")
    head = ["--head", f"--port={port}", f"--ray-client-server-port={free_port()}", "--include-dashboard=false"]
    return subprocess.Popen(
        [
            *(Path(sys.executable).with_name("ray"), "start", "--block", "--disable-usage-stats"),
            *(head if machine["ip"] == ip else [f"--address={address}"]),
            *(f"--node-ip-address={machine['ip']}", f"--temp-dir={folder / machine['ip']}"),
            *("--num-cpus=1", "--object-store-memory=80000000"),
        ],
        env={
            **os.environ,
            **machine.get("env", {}),
            "RLINF_NODE_RANK": str(machine["rank"]),
            "PYTHONPATH": str(folder),
            "ACCELERATORS": str(machine.get("accelerators", 0)),
        },
    )


def wait_for(count: int, address: str, nodes: list[subprocess.Popen[bytes]]) -> None:
    """Waits until that many nodes are alive."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if any(node.poll() is not None for node in nodes):
            raise RuntimeError("a Ray node has ended; see its output above")
        with suppress(ConnectionError):
            ray.init(address=address, logging_level=logging.ERROR)
            try:
                if sum(node["Alive"] for node in ray.nodes()) == count:
                    return
            finally:
                ray.shutdown()
        time.sleep(0.2)
    raise TimeoutError(f"{count} Ray nodes are not alive after 60 s")


def free_port() -> int:
    """A TCP port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """What RLinf makes of one config."""
    if hasattr(Cluster, "_instance"):
        del Cluster._instance  # it makes one for each process
    try:
        config = cast(DictConfig, OmegaConf.load(StringIO(question["config"])))
        return {"accepted": True, **report(config, Cluster(cluster_cfg=config.cluster))}
    except Exception as error:  # noqa: BLE001  # RLinf refuses with any exception there is
        return {"accepted": False, "error": f"{type(error).__name__}: {error}"}
    finally:
        ray.shutdown()


def main() -> None:
    """Answers all questions."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray's processes log to standard output
    logging.disable(logging.INFO)
    questions = [json.loads(line) for line in sys.stdin]
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder, ray_on(questions[0]["nodes"], Path(folder)):
        for question in questions:
            print(json.dumps(answer(question), default=plain), file=answers, flush=True)


if __name__ == "__main__":
    main()
