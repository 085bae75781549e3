"""Settings as a user might write them, for hypothesis to draw.

A draft is right by construction: hosts are chosen first, then where each process is to run, and the placement is
written down from that. So what RLinf must do with it is known without reading any of it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.proof.choices import Choices
from tests.proof.process_drafts import Place, Pool, component_placements
from tests.proof.robot_drafts import TYPES, most_on_a_host, robot

Settings = dict[str, Any]
"""The value of the configuration key `cluster`, or a part of it, as YAML gives it."""

LABELS: tuple[str | int, ...] = ("gpu", "arm", 4090, "a.b_C-1", "cloud", "edge")
VARIABLES = ("NCCL_DEBUG", "OMP_NUM_THREADS", "MUJOCO_GL", "PYTHONPATH", "X")
VALUES: tuple[str | int, ...] = ("a", 8, "", "yes", "1:30", "a b", "~", "0x1F", "'\"#: {}", "ü", "[1]", "- x", "$HOME")
PYTHONS = ("/usr/bin/python3", "/opt/venvs/pi 0/bin/python", "/opt/#1/python")


@dataclass
class Draft:
    """Settings, and what must become of them."""

    settings: Settings
    places: dict[str, list[Place]]
    """Component to its processes."""
    ranks: dict[str, int]
    """Host name to node rank, for the hosts that count."""


def draft(some: Choices) -> Draft:
    """Right settings."""
    hosts = host_list(some)
    ranks = ranking(some, hosts)
    node_groups = group_settings(some, hosts, ranks)
    written, places = component_placements(some, make_pools(hosts, ranks, node_groups))
    rlinf: Settings = {"component_placement": written}
    if node_groups:
        rlinf["node_groups"] = node_groups
    if some.one_in(8):
        rlinf["options"] = options(some)
    clouds = some.between(1, min(2, len(hosts)))
    for number, host in enumerate(hosts):
        if host["group"] == ("cloud" if number < clouds else "edge") and some.flip():
            del host["group"]
    settings: Settings = {
        "overlay": {},
        "bootstrap": {"overlay_ip": "10.10.0.1", "ssh": {"address": "203.0.113.5"}},
        "cloud": hosts[:clouds],
        "edges": hosts[clouds:],
        "rlinf": rlinf,
    }
    if some.one_in(8):
        settings["ray"] = {"env": {some.of(VARIABLES): some.of(VALUES)}}
    return Draft(settings, places, ranks)


def host_list(some: Choices) -> list[Settings]:
    """Cloud nodes and edges, not told apart yet; the group of each is written."""
    labels = some.shuffled(LABELS)[: some.between(1, 3)]
    # One type of robot in each group, or none.
    types = {str(label): some.of(TYPES) if some.one_in(3) else None for label in labels}
    hosts: list[Settings] = []
    for number in range(some.between(1, 5)):
        host: Settings = {
            "name": f"host-{number}",
            "overlay_ip": f"10.10.0.{10 + number}",
            "ssh": {"address": f"198.51.100.{number + 1}"},
            "group": some.of(labels),
        }
        if len(labels) > 1 and some.one_in(6):
            host["group"] = some.shuffled(labels)[:2]
        if some.flip():
            host["gpus"] = some.of((1, 2, 4, 0))
        if number > 0 and some.one_in(8):
            host |= some.of(({"enabled": False}, {"lost": True}))
        if some.one_in(4):
            host["env"] = {some.of(VARIABLES): some.of(VALUES)}
        hosts.append(host)
    names = [host["name"] for host in hosts if counts(host)]
    for host in hosts:
        hardware = hardware_of(some, host, types, names)
        if hardware:
            host["hardware"] = hardware
    return hosts


def hardware_of(some: Choices, host: Settings, types: dict[str, str | None], names: list[str]) -> list[Settings]:
    """The robots of one host: those of one type in one of its groups only, as RLinf wants it."""
    hardware: list[Settings] = []
    for label in groups_of(host):
        type_ = types[label]
        if type_ is None or any(other["type"] == type_ for other in hardware):
            continue
        for number in range(some.between(0, most_on_a_host(type_))):
            one = robot(some, type_, number, names)
            if len(groups_of(host)) > 1 or some.one_in(4):
                one["group"] = label
            hardware.append(one)
    return hardware


def ranking(some: Choices, hosts: list[Settings]) -> dict[str, int]:
    """Ranks, some of them written into the settings: the head has 0, the rest take what is free in their order."""
    head, *rest = [host for host in hosts if counts(host)]
    written = [host for host in rest if some.one_in(3)] if some.one_in(3) else []
    if some.one_in(8):
        head["rank"] = 0
    ranks = {head["name"]: 0}
    for host, rank in zip(written, some.shuffled(range(1, len(rest) + 1)), strict=False):
        ranks[host["name"]] = host["rank"] = rank
    free = iter(sorted(set(range(len(rest) + 1)) - set(ranks.values())))
    return ranks | {host["name"]: next(free) for host in rest if host["name"] not in ranks}


def group_settings(some: Choices, hosts: list[Settings], ranks: dict[str, int]) -> Settings:
    """`rlinf.node_groups`: environments of workers, and hardware to be ignored."""
    found: Settings = {}
    for label in sorted({label for host in hosts for label in groups_of(host)}):
        members = [host for host in hosts if label in groups_of(host) and host["name"] in ranks]
        if not members or not some.one_in(3):
            continue
        settings: Settings = {}
        if not any(robots_in(host, label) for host in members) and some.flip():
            settings["ignore_hardware"] = not some.flip()
        if some.flip():
            settings["env_configs"] = env_configs(some, [host["name"] for host in members])
        found[label] = settings
    return found


def env_configs(some: Choices, names: list[str]) -> list[Settings]:
    """Environments for hosts of a group: no host and no variable twice."""
    variables = iter(some.shuffled(VARIABLES))
    configs: list[Settings] = []
    for cut in filter(None, some.of(([names], [names[:1], names[1:]]))):
        config: Settings = {} if cut == names and some.flip() else {"hosts": cut}
        if some.flip():
            config["env_vars"] = {next(variables): some.of(VALUES) for _ in range(some.between(1, 2))}
        if some.flip():
            config["python_interpreter_path"] = some.of(PYTHONS)
        configs.append(config)
    return configs


def options(some: Choices) -> Settings:
    """Keys of RLinf's that the settings pass on."""
    every: Settings = {
        "auto_scheduler": some.flip(),
        "use_pre_process_policy": some.flip(),
        "tracer": {"enable": True, "output_file": None},
        "net_emulation": {"enabled": True, "crossdc_pairs": [{"src": ["Env:0-3"], "delay_ms": 10}]},
        "profiling": profiling(some),
    }
    return {name: every[name] for name in some.some(every, 2)}


def profiling(some: Choices) -> Settings:
    """Settings of a profiler."""
    own: dict[str, Settings] = {
        "nsight": {"options": {"t": "cuda,nvtx", "sample": "none"}, "flags": ["wait"]},
        "rocprof_sys": {"args": {"t": "x"}, "env": {"A": 1}},
    }
    backend = some.of(tuple(own))
    every: Settings = {"enabled": some.flip(), "worker_groups": some.of(("all", ["EnvGroup"])), "steps": [0, 5]}
    every |= own[backend]
    return {"backend": backend, **{name: every[name] for name in some.some(every, 3)}}


def counts(host: Settings) -> bool:
    """Whether a host is a node of the Ray cluster."""
    return host.get("enabled", True) and not host.get("lost", False)


def groups_of(host: Settings) -> list[str]:
    """Labels of the groups of a host whose group is written."""
    group = host["group"]
    return [str(label) for label in group] if isinstance(group, list) else [str(group)]


def robots_in(host: Settings, label: str) -> list[Settings]:
    """The robots that a host has in a group."""
    return [one for one in host.get("hardware", []) if str(one.get("group", next(iter(groups_of(host)), ""))) == label]


def number_of(host: Settings, type_: str) -> int:
    """How many robots of a type a host has, in whatever group."""
    return sum(one["type"] == type_ for one in host.get("hardware", []))


def make_pools(hosts: Iterable[Settings], ranks: dict[str, int], node_groups: Settings) -> dict[str, Pool]:
    """What each group has to place on, RLinf's own two included."""
    nodes = sorted(((ranks[host["name"]], host) for host in hosts if host["name"] in ranks), key=lambda node: node[0])
    pools: dict[str, Pool] = {}
    for label in sorted({label for _, host in nodes for label in groups_of(host)}):
        members = [(rank, host) for rank, host in nodes if label in groups_of(host)]
        types = {one["type"] for _, host in members for one in robots_in(host, label)}
        if types:
            # RLinf counts what a node has of a type, whichever group declares it.
            pools[label] = pool(label, type_ := types.pop(), {rank: number_of(host, type_) for rank, host in members})
        else:
            ignore = node_groups.get(label, {}).get("ignore_hardware", False)
            pools[label] = of_accelerators(label, members, ignore=ignore)
    pools["cluster"] = of_accelerators("cluster", nodes, ignore=False)
    pools["node"] = of_accelerators("node", nodes, ignore=True)
    return pools


def of_accelerators(label: str, members: list[tuple[int, Settings]], *, ignore: bool) -> Pool:
    """Accelerators where there are any; else the nodes."""
    numbers = {rank: host.get("gpus", 0) for rank, host in members}
    if ignore or not any(numbers.values()):
        return pool(label, None, dict.fromkeys(numbers, 1))
    return pool(label, "Accelerator", numbers)


def pool(label: str, kind: str | None, numbers: dict[int, int]) -> Pool:
    """So many resources on each node."""
    return Pool(label, list(numbers), kind, [(rank, one) for rank, count in numbers.items() for one in range(count)])
