"""Settings to RLinf's `cluster:` block, straight on and with no check: a second renderer, to compare the first with.

It takes right settings and wrong ones alike, as they stand in YAML, and uses nothing of `config` and `components`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.proof.drafts import Settings, counts, groups_of, robots_in
from tests.proof.rlinf import Machine

NOWHERE = 99
"""Rank of a host that there is not."""


def naive(settings: Settings) -> tuple[dict[str, Any], list[Machine]]:
    """A config of that block alone, and the machines that Ray would find."""
    hosts: list[Settings] = [{"group": "cloud", **host} for host in settings["cloud"]]
    hosts += [{"group": "edge", **host} for host in settings["edges"]]
    ranks = ranks_of(hosts)
    rlinf = settings["rlinf"]
    block = {
        **rlinf.get("options", {}),
        "num_nodes": len(ranks),
        "node_groups": list(node_groups(hosts, ranks, rlinf.get("node_groups", {}))),
        "component_placement": {name: placed(value) for name, value in rlinf["component_placement"].items()},
    }
    everywhere = settings.get("ray", {}).get("env", {})
    machines = [
        Machine(
            ip=host["overlay_ip"],
            rank=ranks[host["name"]],
            accelerators=host.get("gpus", 0),
            env={name: str(value) for name, value in {**everywhere, **host.get("env", {})}.items()},
        )
        for host in hosts
        if host["name"] in ranks
    ]
    return {"cluster": block}, machines


def ranks_of(hosts: list[Settings]) -> dict[str, int]:
    """Ranks as written; where none is, the first that nobody wrote."""
    counting = [host for host in hosts if counts(host)]
    written = {host["name"]: host["rank"] for host in counting if host.get("rank") is not None}
    free = iter(sorted(set(range(2 * len(counting))) - set(written.values())))
    return {host["name"]: written[host["name"]] if host["name"] in written else next(free) for host in counting}


def node_groups(hosts: list[Settings], ranks: dict[str, int], told: Settings) -> Iterator[dict[str, Any]]:
    """A group for each label; for each type of robots in it, where there are several."""
    told = {str(label): group for label, group in told.items()}
    counting = [host for host in hosts if host["name"] in ranks]
    labels = {label: None for host in counting for label in [*groups_of(host), *robots_groups(host)]}
    for label in labels:
        members = [host for host in counting if label in groups_of(host)]
        group: dict[str, Any] = {
            "label": label,
            "node_ranks": ",".join(str(ranks[host["name"]]) for host in members),
        }
        settings = told.get(label, {})
        if "ignore_hardware" in settings:
            group["ignore_hardware"] = settings["ignore_hardware"]
        out = {host["name"] for host in hosts if label in groups_of(host)} - ranks.keys()
        configs = [env_config(config, members, ranks, out) for config in settings.get("env_configs", [])]
        configs = [config for config in configs if config["node_ranks"]]
        if configs:
            group["env_configs"] = configs
        driven = [(one["type"], hardware(one, host, ranks)) for host in counting for one in robots_in(host, label)]
        types = dict.fromkeys(type_ for type_, _ in driven)
        for type_ in types:
            ours = [config for of, config in driven if of == type_]
            yield {**group, "hardware": {"type": type_, "configs": ours}}
        if not types:
            yield group
    for label in told.keys() - {label for host in hosts for label in groups_of(host)}:
        yield {"label": label, "node_ranks": str(NOWHERE)}


def robots_groups(host: Settings) -> list[str]:
    """Labels of the groups that the robots of a host are said to be in, right or not."""
    first = next(iter(groups_of(host)), "")
    return [str(one.get("group", first)) for one in host.get("hardware", [])]


def env_config(config: Settings, members: list[Settings], ranks: dict[str, int], out: set[str]) -> dict[str, Any]:
    """One environment, for ranks in place of hosts; hosts that do not count are left out."""
    names = [name for name in config.get("hosts", [host["name"] for host in members]) if name not in out]
    found: dict[str, Any] = {"node_ranks": ",".join(str(ranks.get(name, NOWHERE)) for name in names)}
    if "env_vars" in config:
        found["env_vars"] = [{name: value} for name, value in config["env_vars"].items()]
    if "python_interpreter_path" in config:
        found["python_interpreter_path"] = config["python_interpreter_path"]
    return found


def hardware(robot: Settings, host: Settings, ranks: dict[str, int]) -> dict[str, Any]:
    """One robot, with ranks in place of hosts."""
    found: dict[str, Any] = {"node_rank": ranks[host["name"]]}
    for name, value in robot.items():
        if name.endswith("controller_host"):
            found[name.replace("_host", "_node_rank")] = ranks.get(value, NOWHERE)
        elif name not in ("type", "group", "node_rank"):
            found[name] = value
    return found


def placed(value: object) -> object:
    """Where a component runs; labels in the one form that RLinf takes: a text, without spaces at its ends."""
    if not isinstance(value, dict) or "node_group" not in value:
        return value
    labels = value["node_group"]
    if isinstance(labels, list):
        labels = ",".join(map(str, labels))
    return {**value, "node_group": labels.strip() if isinstance(labels, str) else labels}
