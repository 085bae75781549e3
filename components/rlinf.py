"""The RLinf config, rendered from the settings. Pure, and without Pulumi.

The rules are those of `ClusterConfig` in RLinf 0.3.0. Ranks, placements and all texts that could be taken for
something else are quoted: YAML 1.1, which RLinf's loader reads, takes `1:30` for the number 90 and `on` for true.
"""

from __future__ import annotations

import re
from io import StringIO
from pathlib import PurePath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString as Quoted

from config.base_config import BaseConfig
from config.models import Cluster, EnvConfig, PlacementOnGroup, RayHost, Rlinf
from config.ranks import ranked

# What every YAML reads as a text, but for the words that 1.1 reads as true, false or nothing.
_PLAIN = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z][A-Za-z0-9_-]*", re.IGNORECASE)


def render_config(cluster: Cluster, base: BaseConfig | None = None) -> str:
    """The YAML text of a config that RLinf takes as it is.

    Args:
        cluster: the settings.
        base: the config whose `cluster:` is replaced, every other line as it was; without one, the block is all.
    """
    block = _yaml({"cluster": cluster_block(cluster)})
    return block if base is None else base.with_cluster(block, cluster.rlinf.options)


def config_name(cluster: Cluster) -> str:
    """Name of the rendered config, for Hydra's --config-name."""
    rlinf = cluster.rlinf
    return rlinf.config_name or (PurePath(rlinf.base_config).stem if rlinf.base_config else "cluster")


def cluster_block(cluster: Cluster) -> dict[str, Any]:
    """The `cluster:` block, ready to be written: texts that need it are quoted."""
    nodes = ranked(cluster)
    rlinf = cluster.rlinf
    members: dict[str, dict[int, RayHost]] = {}
    for rank, node in nodes.items():
        for label in node.groups:
            members.setdefault(label, {})[rank] = node
    ranks = {node.name: rank for rank, node in nodes.items()}
    return {
        "num_nodes": len(nodes),
        "node_groups": [_group(rlinf, label, hosts, ranks) for label, hosts in members.items()],
        "component_placement": {
            _text(component): _placement(where) for component, where in rlinf.component_placement.items()
        },
        **{_text(name): _quoted(value) for name, value in rlinf.options.items()},
    }


def _placement(where: PlacementOnGroup | str) -> dict[str, Any] | str:
    if isinstance(where, str):
        return Quoted(where)
    group = {"node_group": _text(",".join(where.node_groups))} if "node_group" in where.model_fields_set else {}
    return {**group, "placement": Quoted(where.placement)}


def _group(rlinf: Rlinf, label: str, hosts: dict[int, RayHost], ranks: dict[str, int]) -> dict[str, Any]:
    group: dict[str, Any] = {"label": _text(label), "node_ranks": Quoted(rank_ranges(list(hosts)))}
    settings = rlinf.node_groups.get(label)
    if settings is not None:
        environments = [_environment(each, hosts) for each in settings.env_configs]
        if written := [environment for environment in environments if environment is not None]:
            group["env_configs"] = written
    robots = [
        (robot.type, _robot(robot.model_dump(exclude_unset=True), rank, ranks))
        for rank, host in hosts.items()
        for robot in host.hardware
        if label == (robot.group or host.groups[0])
    ]
    if robots:
        group["hardware"] = {"type": robots[0][0], "configs": [config for _, config in robots]}
    if settings is not None and settings.ignore_hardware:
        group["ignore_hardware"] = True
    return group


def _environment(environment: EnvConfig, hosts: dict[int, RayHost]) -> dict[str, Any] | None:
    """One entry of `env_configs`; None where none of its hosts takes part."""
    ranks = [rank for rank, host in hosts.items() if environment.hosts is None or host.name in environment.hosts]
    if not ranks:
        return None
    rendered: dict[str, Any] = {"node_ranks": Quoted(rank_ranges(ranks))}
    if environment.env_vars:
        rendered["env_vars"] = [{_text(name): Quoted(value)} for name, value in environment.env_vars.items()]
    if environment.python_interpreter_path is not None:
        rendered["python_interpreter_path"] = _text(environment.python_interpreter_path)
    return rendered


def _robot(fields: dict[str, Any], rank: int, ranks: dict[str, int]) -> dict[str, Any]:
    """One entry of `hardware.configs`, with ranks in place of hosts."""
    rendered: dict[str, Any] = {"node_rank": rank}
    for name, value in fields.items():
        if name in {"type", "group"} or value is None:
            continue
        if name.endswith("controller_host"):
            rendered[name.removesuffix("host") + "node_rank"] = ranks[value]
        else:
            rendered[name] = _quoted(value)
    return rendered


def _quoted(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    """A value with those of its texts quoted that need it."""
    match value:
        case str():
            return _text(value)
        case list():
            return [_quoted(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {_text(str(name)): _quoted(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else Quoted(text)


def _yaml(document: dict[str, Any]) -> str:
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 10_000
    text = StringIO()
    yaml.dump(document, text)  # pyright: ignore[reportUnknownMemberType]  # ruamel.yaml's stream is untyped
    return text.getvalue()


def rank_ranges(ranks: list[int]) -> str:
    """Ascending ranks in RLinf's notation: `[0, 1, 2, 5]` is `0-2,5`."""
    spans: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
