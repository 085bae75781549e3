"""Node groups, their software environments and robots, as RLinf 0.3.0 takes them (`ClusterConfig` there)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from config.faults import Fault, nearest
from config.models import Cluster, RayHost, Robot
from config.ranks import RESERVED
from config.rules.hosts import keyed_nodes

_OURS = frozenset(
    {
        "AUTOSCALER_METRIC_PORT",
        "DASHBOARD_METRIC_PORT",
        "PATH",
        "RAY_ADDRESS",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN",
        "RAY_AUTH_TOKEN_PATH",
        "RLINF_COMM_NET_DEVICES",
        "RLINF_NODE_RANK",
        "TMPDIR",
    }
)
"""Variables that this program sets on every node."""

_IDENTIFIERS = {
    "Franka": ("ROBOT_IP",),
    "DualFranka": ("LEFT_ROBOT_IP", "RIGHT_ROBOT_IP"),
    "GimArm": ("CAN_INTERFACE",),
    "DOSW1": ("ROBOT_URL",),
}
"""Variables from which RLinf makes robots on a host that declares none (`RobotAutoConfig`)."""


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with labels, environments and robots."""
    yield from _labels(cluster)
    yield from _settings_of_groups(cluster)
    yield from _environments(cluster)
    yield from _variables(cluster)
    yield from _robots(cluster)
    yield from _one_type_per_group(cluster)
    yield from _robots_from_variables(cluster)


def known_labels(cluster: Cluster) -> list[str]:
    """The labels of all hosts, sorted."""
    return sorted({label for node in cluster.nodes for label in node.groups}.difference(RESERVED))


def _labels(cluster: Cluster) -> Iterator[Fault]:
    for key, node in keyed_nodes(cluster):
        for label in node.groups:
            if label in RESERVED:
                yield Fault(f"{key}.group", label, "this label is RLinf's own", "choose another label")
        for label in {label for label in node.groups if node.groups.count(label) > 1}:
            yield Fault(f"{key}.group", label, "a host is in a group once", "name it once")


def _settings_of_groups(cluster: Cluster) -> Iterator[Fault]:
    labels = known_labels(cluster)
    for label in cluster.rlinf.node_groups:
        if label not in labels:
            yield no_such_group(f"cluster.rlinf.node_groups.{label}", label, labels)


def no_such_group(key: str, label: str, labels: list[str]) -> Fault:
    """The fault that a label is no host's group."""
    near = nearest(label, labels)
    there = ", ".join(labels)
    fix = f"write `{near}`; the groups are: {there}" if near else f"write one of: {there}"
    return Fault(key, label, "must be the group of at least one host", fix)


def _environments(cluster: Cluster) -> Iterator[Fault]:
    for label, group in cluster.rlinf.node_groups.items():
        members = [node.name for node in cluster.nodes if label in node.groups]
        host_seen: dict[str, str] = {}
        variable_seen: dict[str, str] = {}
        for index, environment in enumerate(group.env_configs):
            key = f"cluster.rlinf.node_groups.{label}.env_configs[{index}]"
            for name in environment.hosts if environment.hosts is not None else members:
                if name not in members:
                    fix = f"write hosts of the group: {', '.join(members)}"
                    yield Fault(f"{key}.hosts", name, f"must be a host of the group {label}", fix)
                elif name in host_seen:
                    rule = f"a host has one environment in a group; {host_seen[name]} is for this one, too"
                    yield Fault(f"{key}.hosts", name, rule, "name it in one of the two")
                host_seen.setdefault(name, key)
            for variable in environment.env_vars:
                if variable in variable_seen:
                    rule = f"RLinf takes a variable once in a group; {variable_seen[variable]} sets this one, too"
                    fix = "remove one of the two; for other values on other hosts, use the hosts' own env"
                    yield Fault(f"{key}.env_vars.{variable}", None, rule, fix)
                variable_seen.setdefault(variable, key)
                if variable in _OURS:
                    yield _set_here(f"{key}.env_vars.{variable}")


def _variables(cluster: Cluster) -> Iterator[Fault]:
    places = [("cluster.ray.env", cluster.ray.env), *((f"{key}.env", node.env) for key, node in keyed_nodes(cluster))]
    for key, env in places:
        for variable in env:
            if variable in _OURS:
                yield _set_here(f"{key}.{variable}")


def _set_here(key: str) -> Fault:
    return Fault(key, None, "this program sets this variable itself", "remove it")


def _robots(cluster: Cluster) -> Iterator[Fault]:
    names = [node.name for node in cluster.nodes if node.counts]
    for key, node in keyed_nodes(cluster):
        seen: list[dict[str, Any]] = []
        for index, robot in enumerate(node.hardware):
            here = f"{key}.hardware[{index}]"
            yield from _group_of(here, node, robot)
            fields = robot.model_dump(exclude={"group"})
            if fields in seen:
                yield Fault(here, None, "a robot stands once; an earlier entry is just the same", "remove one")
            seen.append(fields)
            for field, value in robot:
                if field.endswith("controller_host") and value is not None and value not in names and node.counts:
                    fix = f"write one of: {', '.join(names)}"
                    yield Fault(f"{here}.{field}", value, "must be the name of a node that takes part", fix)


def _group_of(key: str, node: RayHost, robot: Robot) -> Iterator[Fault]:
    if robot.group is None and len(node.groups) > 1:
        rule = "the host is in several groups, and RLinf finds a robot in one"
        yield Fault(f"{key}.group", None, rule, f"add it, one of: {', '.join(node.groups)}")
    elif robot.group is not None and robot.group not in node.groups:
        rule = f"must be a group of the host {node.name}"
        yield Fault(f"{key}.group", robot.group, rule, f"write one of: {', '.join(node.groups)}, or remove it")


def _one_type_per_group(cluster: Cluster) -> Iterator[Fault]:
    types: dict[str, tuple[str, str]] = {}
    claimed: dict[tuple[str, str], str] = {}
    for key, node in keyed_nodes(cluster):
        if not node.counts:
            continue
        for index, robot in enumerate(node.hardware):
            label = robot.group or node.groups[0]
            here = f"{key}.hardware[{index}]"
            type_, where = types.setdefault(label, (robot.type, here))
            if type_ != robot.type:
                rule = f"a node group has robots of one type; {where} in {label} is a {type_}"
                yield Fault(f"{here}.type", robot.type, rule, "put the host into another group")
            settings = cluster.rlinf.node_groups.get(label)
            if settings is not None and settings.ignore_hardware and where == here:
                rule = f"RLinf takes no robots in a group with ignore_hardware, such as {label}"
                fix = f"remove cluster.rlinf.node_groups.{label}.ignore_hardware, or the robots"
                yield Fault(here, None, rule, fix)
            other = claimed.setdefault((node.name, robot.type), label)
            if other != label:
                rule = f"a host's robots of one type are in one group; those of {node.name} are in {other} already"
                yield Fault(f"{here}.group", label, rule, f"write {other}")


def _robots_from_variables(cluster: Cluster) -> Iterator[Fault]:
    """RLinf makes a robot of a variable on a host that declares none, and shares one among several by commas."""
    for key, node in keyed_nodes(cluster):
        if not node.counts:
            continue
        env = {**dict.fromkeys(cluster.ray.env, "cluster.ray.env"), **dict.fromkeys(node.env, f"{key}.env")}
        values = {**cluster.ray.env, **node.env}
        declared: dict[str, list[Robot]] = {}
        for robot in node.hardware:
            declared.setdefault(robot.type, []).append(robot)
        for type_, variables in _IDENTIFIERS.items():
            for variable in variables:
                if variable in env and type_ not in declared:
                    rule = f"RLinf makes a {type_} of this variable on {node.name}, which declares none"
                    yield Fault(f"{env[variable]}.{variable}", None, rule, f"declare it: {key}.hardware")
        for type_, robots in declared.items():
            count = len(robots)
            fields = [field for field in type(robots[0]).model_fields if not field.endswith("controller_host")]
            for variable in (field.upper() for field in fields if field not in {"type", "group"}):
                if count > 1 and variable in env and len(values[variable].split(",")) != count:
                    rule = f"{node.name} has {count} {type_} robots, and RLinf wants one value for each, with commas"
                    yield Fault(f"{env[variable]}.{variable}", None, rule, "write them in the entries under hardware")
