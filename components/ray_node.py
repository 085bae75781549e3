"""Ray on the nodes: the head first, then every worker in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_command import remote

from components.host import encoded
from components.member import RayMember, head_of
from components.token import ray_token
from components.versions import differences
from config.defaults import ECHO_PORT
from config.models import RayHost


def start_ray(nodes: Sequence[RayMember], overlay: Mapping[str, remote.Command]) -> dict[str, remote.Command]:
    """Starts Ray on every node that takes part, each on its own address and with its rank.

    Args:
        nodes: cloud nodes and edges.
        overlay: what `join_overlay` returned.

    Returns:
        Node name to the command that is done when Ray listens on that node; its output is one line that changes
        whenever Ray was started anew. In the order of ranks.
    """
    head = head_of(nodes)
    running = {head.member.rank: _ray(head, head, [overlay[head.member.name]], _same_versions(nodes))}
    for node in nodes:
        if not node.is_ours or node is head:
            continue
        if node.member.is_absent:
            _ray(node, head, [])
        elif node.member.runs_ray:
            running[node.member.rank] = _ray(node, head, [overlay[node.member.name], running[0]])
    return {member.name: running[member.rank] for member in head.args.plan.nodes if member.rank in running}


def environment(node: RayMember, dashboard_ports: Mapping[str, str]) -> str:
    """The variables of Ray and all its workers on a node, `NAME=value` one a line.

    The token is in a file: RLinf copies this environment into the runtime environments that Ray logs and shows.
    """
    entry = node.args.host
    variables = {
        **node.args.settings.cluster.ray.env,
        **(entry.env if isinstance(entry, RayHost) else {}),
        **dashboard_ports,
        "RLINF_NODE_RANK": str(node.member.rank),
        "RLINF_COMM_NET_DEVICES": node.member.device,
        "RAY_ADDRESS": node.args.plan.ray_address,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": "/etc/rlinf-cloud-edge/ray.token",
    }
    return "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))


def _same_versions(nodes: Sequence[RayMember]) -> pulumi.Input[None]:
    """Fails before the head starts where nodes differ in what Ray needs to be the same.

    Not in a preview: what new hosts have is not known there, and the head would seem to change with each of them.
    """
    if pulumi.runtime.is_dry_run():
        return None
    enabled = [node for node in nodes if node.is_ours and node.member.runs_ray]

    def compare(facts: Sequence[str]) -> None:
        found = differences({node.member.name: line for node, line in zip(enabled, facts, strict=True)})
        if found:
            raise pulumi.RunError(found)

    return pulumi.Output.all(*(node.ray_facts for node in enabled)).apply(compare)


def planned_settings(node: RayMember, head: RayMember) -> dict[str, str]:
    """What a node's `ray.sh` reads that is known before any host was asked."""
    plan = node.args.plan
    ports = plan.ports
    # The head's two metrics servers take their ports from variables only.
    metrics = {
        "AUTOSCALER_METRIC_PORT": str(ports.autoscaler_metrics),
        "DASHBOARD_METRIC_PORT": str(ports.dashboard_metrics),
    }
    return {
        "ROLE": node.member.role,
        "RANK": str(node.member.rank),
        "OVERLAY_IP": node.member.ip,
        "DEVICE": node.member.device,
        "HEAD_IP": head.member.ip,
        # Without an overlay there is no echo service.
        "ECHO_PORT": "" if plan.direct else str(ECHO_PORT),
        "RAY_VENV": node.needs.given["RAY_VENV"],
        "RAY_ACTIVATE": node.needs.given["RAY_ACTIVATE"],
        "RAY_USER": node.needs.given["RAY_USER"],
        "RAY_PORTS": ports.firewall,
        "RAY_ARGUMENTS": ports.arguments(node.member.role, head.member.ip),
        "RAY_ENV_BASE64": encoded(environment(node, metrics if node is head else {})),
        "GCS_PORT": str(ports.gcs),
        "NODE_MANAGER_PORT": str(ports.node_manager),
    }


def planned_ray(node: RayMember, head: RayMember) -> list[str]:
    """All that is known of a node's Ray before any host was asked."""
    ray = node.args.settings.cluster.ray
    return [*planned_settings(node, head).values(), ray.version, ray.python]


def _ray(
    node: RayMember, head: RayMember, depends_on: Sequence[pulumi.Resource], checked: pulumi.Input[None] = None
) -> remote.Command:
    """Ray on a node.

    Args:
        node: which one.
        head: the head.
        depends_on: what must be done before.
        checked: what must not have failed before.
    """
    settings = {
        **service_settings(node, head),
        "FACTS": pulumi.Output.all(node.ray_facts, checked).apply(lambda known: known[0]),
    }
    opts = pulumi.ResourceOptions(parent=node, depends_on=list(depends_on))
    return node.host.run("ray", settings, opts, planned=planned_ray(node, head))


def service_settings(node: RayMember, head: RayMember) -> dict[str, pulumi.Input[str]]:
    """What a node's `ray.sh` reads, but for FACTS, the host's own."""
    return {
        **planned_settings(node, head),
        "HEAD_FACTS": head.ray_facts,
        "RAY_TOKEN": node.args.settings.network_secret.apply(ray_token),
    }
