"""Ray on the nodes: the head first, then every worker in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_command import remote

from components.host import encoded
from components.member import RayMember, head_of
from components.token import ray_token
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
    running = {head.member.rank: _ray(head, head, [overlay[head.member.name]])}
    for node in nodes:
        if not node.is_ours or node is head:
            continue
        if node.member.state in {"lost", "pending"}:
            _ray(node, head, [])
        elif node.member.state in {"enabled", "joined"}:
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


def _ray(node: RayMember, head: RayMember, depends_on: Sequence[pulumi.Resource]) -> remote.Command:
    settings = node.args.settings
    plan = node.args.plan
    ports = plan.ports
    is_head = node is head
    # The head's two metrics servers take their ports from variables only.
    metrics = {
        "AUTOSCALER_METRIC_PORT": str(ports.autoscaler_metrics),
        "DASHBOARD_METRIC_PORT": str(ports.dashboard_metrics),
    }
    return node.host.run(
        "ray",
        {
            "ROLE": node.member.role,
            "RANK": str(node.member.rank),
            "OVERLAY_IP": node.member.ip,
            "DEVICE": node.member.device,
            "HEAD_IP": head.member.ip,
            # Without an overlay there is no echo service.
            "ECHO_PORT": "" if plan.direct else str(ECHO_PORT),
            "FACTS": node.facts,
            "HEAD_FACTS": head.facts,
            "RAY_USER": node.host.user,
            "RAY_TOKEN": settings.network_secret.apply(ray_token),
            "RAY_PORTS": ports.firewall,
            "RAY_ARGUMENTS": ports.arguments(node.member.role, head.member.ip),
            "RAY_ENV_BASE64": encoded(environment(node, metrics if is_head else {})),
            "GCS_PORT": str(ports.gcs),
            "NODE_MANAGER_PORT": str(ports.node_manager),
        },
        pulumi.ResourceOptions(parent=node, depends_on=list(depends_on)),
    )
