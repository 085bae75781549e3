"""The gate: the head sees N of N nodes, each with its own rank and overlay IP, and each working."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pulumi
from pulumi_command import remote

from components.host import encoded
from components.member import RayMember, head_of
from components.plan import Plan
from components.ray_node import planned_ray
from components.rlinf import config_name, render_config
from components.token import fingerprint
from config.models import CloudNode


def open_gate(nodes: Sequence[RayMember], ray: Mapping[str, remote.Command]) -> remote.Command:
    """The command that is done when every node of the plan has run a task.

    It runs again whenever the plan changes or a Ray was started anew, and leaves the rendered RLinf config on the
    head, in /etc/rlinf-cloud-edge/rlinf.

    Args:
        nodes: cloud nodes and edges.
        ray: what `start_ray` returned.
    """
    head = head_of(nodes)
    named = {node.member.name: node for node in nodes}
    rays = [text for name in ray for text in planned_ray(named[name], head)]
    for node in nodes:
        if node.member.state == "lost" and isinstance(node.args.host, CloudNode):
            _gate(node, head, ray, rays)  # It may have been the head.
    return _gate(head, head, ray, rays)


def _gate(node: RayMember, head: RayMember, ray: Mapping[str, remote.Command], rays: Sequence[str]) -> remote.Command:
    settings = head.args.settings
    plan = head.args.plan
    config = render_config(settings.cluster, settings.base_config)
    expected = gate_plan(plan, settings.cluster.ray.version, settings.cluster.ray.join_timeout)
    lines = pulumi.Output.all(*(command.stdout for command in ray.values()))
    secret = settings.network_secret.apply(fingerprint)
    return node.host.run(
        "gate",
        {
            "NODES": lines.apply(lambda told: "; ".join(map(str.strip, told))),
            "RLINF_CONFIG_NAME": config_name(settings.cluster),
            "RLINF_CONFIG_BASE64": encoded(config),
            "PLAN_BASE64": encoded(expected),
            "MEMBERS": " ".join(sorted(member.name for member in plan.members if member.state != "lost")),
            "SECRET": secret,
        },
        pulumi.ResourceOptions(parent=node, depends_on=list(ray.values())),
        planned=[config, expected, *rays, secret],
    )


def arrived_nodes(result: str) -> frozenset[str]:
    """Names of the pending nodes that the gate found nevertheless, from its line of result."""
    words = (word.partition("=") for word in result.split())
    return frozenset(name for key, _, names in words if key == "arrived" for name in names.split(",") if name)


def gate_plan(plan: Plan, ray: str, timeout: int) -> str:
    """What `gate.py` reads: JSON with the nodes that must be there, and those that may be missing (`pending`).

    Args:
        plan: the plan.
        ray: the Ray version of every node.
        timeout: seconds to wait for all nodes.
    """
    nodes = [
        {"name": node.name, "rank": node.rank, "ip": node.ip, "device": node.device}
        | ({"pending": True} if node.state == "pending" else {})
        for node in plan.nodes
    ]
    return json.dumps({"address": plan.ray_address, "timeout": timeout, "ray": ray, "nodes": nodes})
