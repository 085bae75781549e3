r"""What RLinf itself makes of a config: accepted or refused, and where each component would run.

    oracle.py < QUESTIONS > ANSWERS

Runs in the environment that RLinf is installed in, as one process for any number of questions. A question is one
line of JSON: a config, as the text that Hydra would load or as what is in it, and the machines that Ray would find, the
driver's first:

    {"config": "cluster:\n  num_nodes: 2\n  …",
     "nodes": [{"ip": "10.10.0.10", "rank": 0, "accelerators": 4, "env": {"NAME": "value"}}, …]}

The answer is one line of JSON:

    {"accepted": true,
     "placements": {"actor": [{"process": 0, "node": 0, "group": "cloud", "resources": [0]}, …], …},
     "groups": {"cloud": {"nodes": [0], "hardware": "Accelerator", "count": 4, "env": {"0": {…}}, "python": {}}, …},
     "robots": {"1": [{"type": "Franka", "robot_ip": "172.16.0.2", …}]}}

or `{"accepted": false, "stage": "cluster", "error": "AssertionError: …"}`, with RLinf's own words; the stage is
`yaml`, `cluster` (what `Cluster(cluster_cfg=…)` does) or `placement` (what launching a worker group does).

What is RLinf's own here: everything that reads the config. `ClusterConfig`, the class that probes a node and every
hardware policy in it, `NodeProbe` (which sorts the nodes and makes the groups), `HybridComponentPlacement` and the
placement strategies are the installed code, unchanged. What stands in for something else:

- `LocalRay`, for Ray: it lists the machines of the question, and runs the probe of a node in this process, in that
  node's environment, instead of in an actor on it. Nothing is connected to, waited for or launched; more nodes in the
  config than in the question, for which RLinf waits for ever, are refused.
- `Accelerators`, for the drivers: as many accelerators as the question says.
- libyaml's emitter, for PyYAML's own, where RLinf compares the configs of robots by their YAML.
- the bench, for what only a robot's computer has: a Franka answers a ping, the cameras that the config or the
  node's environment names are plugged in (serial numbers are texts, as the cameras' SDKs report them), every
  interpreter path exists.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from io import StringIO
from typing import Any, TextIO, cast

import ray
import rlinf.scheduler.cluster.cluster as cluster_module
import rlinf.scheduler.cluster.node as node_module
import rlinf.scheduler.hardware.hardware as hardware_module
import yaml
from omegaconf import DictConfig, OmegaConf
from rlinf.scheduler import Cluster
from rlinf.scheduler.cluster.config import ClusterConfig
from rlinf.scheduler.cluster.node import NodeProbe
from rlinf.scheduler.hardware import AcceleratorType, HardwareConfig
from rlinf.scheduler.hardware.accelerators import AcceleratorManager, NvidiaGPUManager
from rlinf.scheduler.hardware.robots.franka import FrankaRobot
from rlinf.utils.placement import HybridComponentPlacement


@dataclass(frozen=True)
class Machine:
    """One node that Ray would find."""

    ip: str
    rank: int
    """Its RLINF_NODE_RANK."""
    accelerators: int = 0
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its `ray start`."""
        return {**self.env, "RLINF_NODE_RANK": str(self.rank)}


class Accelerators(NvidiaGPUManager):
    """The accelerators of the node that is being probed."""

    count = 0

    @staticmethod
    def get_num_devices() -> int:
        """As many as the question says."""
        return Accelerators.count

    @staticmethod
    def get_accelerator_model() -> str:
        """No particular one."""
        return "any"


class LocalRay:
    """What RLinf asks of Ray when it makes a cluster."""

    util = ray.util

    def __init__(self) -> None:
        self.by_id: dict[str, Machine] = {}

    def use(self, machines: list[Machine]) -> None:
        """Makes these the nodes of the Ray cluster."""
        # Ray's name for a node: 28 bytes in hexadecimal.
        self.by_id = {f"{number:056x}": machine for number, machine in enumerate(machines)}

    def is_initialized(self) -> bool:
        """Always."""
        return True

    def nodes(self) -> list[dict[str, Any]]:
        """`ray.nodes()`."""
        return [
            {"NodeID": name, "NodeManagerAddress": machine.ip, "Resources": {"CPU": 8.0}, "Alive": True}
            for name, machine in self.by_id.items()
        ]

    def get_runtime_context(self) -> LocalRay:
        """The context of the driver."""
        return self

    def get_node_id(self) -> str:
        """The driver runs on the first."""
        return next(iter(self.by_id))

    def get(self, results: list[Any]) -> list[Any]:
        """Calls have run already."""
        return results


class LocalProbe:
    """Takes the place of the actor class `_RemoteNodeProbe`: runs its class here, as if on that node."""

    # What `@ray.remote` wrapped.
    original: type[Any] = node_module._RemoteNodeProbe.__ray_metadata__.modified_class  # type: ignore[attr-defined]

    def __init__(self, known: LocalRay) -> None:
        self.ray = known

    def options(self, **_: object) -> LocalProbe:
        """Where the actor runs follows from what it is given."""
        return self

    def remote(self, node: dict[str, Any], num_nodes: int, config: ClusterConfig | None, python: str) -> Any:
        """A handle of the actor. What fails on a node is raised by the call, as from an actor."""

        def get_node_info() -> Any:
            machine = self.ray.by_id[node["NodeID"]]
            with on(machine, config):
                return self.original(node, num_nodes, config, python).get_node_info()

        return types.SimpleNamespace(get_node_info=types.SimpleNamespace(remote=get_node_info))


class Bench:
    """What is plugged in on the node that is being probed."""

    cameras: set[str] = set()  # noqa: RUF012  # replaced, never changed


@contextmanager
def on(machine: Machine, config: ClusterConfig | None) -> Iterator[None]:
    """As if this process were one on that machine."""
    before = os.environ
    os.environ = machine.environment  # type: ignore[assignment]  # noqa: B003  # what a process there would find
    Accelerators.count = machine.accelerators
    named = serials(config.get_node_hw_configs_by_rank(machine.rank) if config else [])
    Bench.cameras = {*named, *machine.env.get("CAMERA_SERIALS", "20").split(",")}
    try:
        yield
    finally:
        os.environ = before  # noqa: B003


def serials(configs: Iterable[HardwareConfig]) -> Iterator[str]:
    """The serial numbers of the cameras that robots name, as the cameras' SDKs report them."""
    for config in configs:
        for serial in getattr(config, "camera_serials", None) or ():
            yield str(serial)


class ClusterOfQuestion(Cluster):
    """A `Cluster` as its constructor leaves it, without the parts that need a running Ray: connection and managers."""

    def __new__(cls, *_: object, **__: object) -> ClusterOfQuestion:
        """RLinf's is a singleton; this is one of many."""
        return object.__new__(cls)

    def __init__(self, block: DictConfig) -> None:
        self._cluster_cfg = ClusterConfig.from_dict_cfg(block)
        self._num_nodes = self._cluster_cfg.num_nodes
        alive = len(Cluster.get_alive_nodes())
        if alive < self._num_nodes:
            raise TimeoutError(f"RLinf would wait for ever for {self._num_nodes} nodes; there are {alive}.")
        self._node_probe = NodeProbe(self._num_nodes, self._cluster_cfg)
        self._nodes = self._node_probe.nodes
        self._node_groups = self._node_probe.node_groups
        self._has_initialized = True


def prepare() -> LocalRay:
    """Puts the stand-ins in place; they stay for the life of the process."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    known = LocalRay()
    node_module.ray = known  # type: ignore[assignment]
    cluster_module.ray = known  # type: ignore[assignment]
    node_module._RemoteNodeProbe = LocalProbe(known)  # type: ignore[assignment,misc]
    AcceleratorManager.manager_register.clear()
    AcceleratorManager.manager_register[AcceleratorType.NV_GPU] = Accelerators
    for backend in AcceleratorManager.profile_backend_register.values():
        backend.check = lambda _: False  # type: ignore[method-assign]  # no profiler is installed on the nodes
    reachable = types.SimpleNamespace(is_alive=True)
    sys.modules["icmplib"] = cast(types.ModuleType, types.SimpleNamespace(ping=lambda *_, **__: reachable))
    FrankaRobot.enumerate_cameras = lambda *_, **__: Bench.cameras  # type: ignore[method-assign]
    FrankaRobot._validate_camera_sdk = lambda *_, **__: None  # type: ignore[method-assign]
    hardware_module.yaml = cast(types.ModuleType, types.SimpleNamespace(dump=partial(yaml.dump, Dumper=yaml.CDumper)))
    node_module.os = cast(types.ModuleType, OsWithEveryFile())  # type: ignore[attr-defined]
    return known


class OsWithEveryFile:
    """`os` as `node.py` uses it, on a node that has every interpreter it is asked about."""

    path = types.SimpleNamespace(exists=lambda _: True)

    @property
    def environ(self) -> Mapping[str, str]:
        """That of the node."""
        return os.environ


def ask(known: LocalRay, question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one question."""
    machines = [Machine(**facts) for facts in question["nodes"]]
    known.use(machines)
    stage = "yaml"
    try:
        given = question["config"]
        config = cast(
            DictConfig, OmegaConf.load(StringIO(given)) if isinstance(given, str) else OmegaConf.create(given)
        )
        stage = "cluster"
        # The environment of the driver is that of its node's `ray start`, as RLinf wants it to be.
        with on(machines[0], None):
            cluster = ClusterOfQuestion(config.cluster)
        stage = "placement"
        return {"accepted": True, **report(config, cluster)}
    except Exception as error:  # noqa: BLE001  # RLinf refuses with any exception there is
        return {"accepted": False, "stage": stage, "error": f"{type(error).__name__}: {error}"}


def report(config: DictConfig, cluster: Cluster) -> dict[str, Any]:
    """Where RLinf places each component, and what it knows of groups and robots."""
    components = HybridComponentPlacement(config, cluster)
    placements = {
        component: [
            {
                "process": placement.rank,
                "node": placement.cluster_node_rank,
                "group": placement.node_group_label,
                "resources": placement.local_hardware_ranks,
            }
            for placement in components.get_strategy(component).get_placement(cluster)
        ]
        for component in components.components
    }
    groups = {
        group.label: {
            "nodes": group.node_ranks,
            "hardware": group.hardware_type,
            "count": group.hardware_resource_count,
            "env": per_node(group.node_ranks, group.get_node_env_vars),
            "python": per_node(group.node_ranks, group.get_node_python_interpreter_path),
        }
        for group in cluster._node_groups
    }
    robots = {
        str(node.node_rank): [
            {"type": info.type, **asdict(cast(Any, info).config)}
            for resource in node.hardware_resources
            for info in resource.infos
            if hasattr(info, "config")
        ]
        for node in cluster._nodes
    }
    return {
        "placements": placements,
        "groups": groups,
        "robots": {rank: found for rank, found in robots.items() if found},
    }


def per_node(ranks: Iterable[int], value: Callable[[int], Any]) -> dict[str, Any]:
    """What is set for each rank; nothing for those for which nothing is."""
    found = {str(rank): value(rank) for rank in ranks}
    return {rank: each for rank, each in found.items() if each}


def main() -> None:
    """Answers questions until standard input ends."""
    answers: TextIO = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    known = prepare()
    gc.freeze()  # what torch and Ray have loaded stays
    for line in sys.stdin:
        print(json.dumps(ask(known, json.loads(line)), default=plain), file=answers, flush=True)


def plain(value: object) -> object:
    """OmegaConf's containers as JSON's."""
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else str(value)


if __name__ == "__main__":
    main()
