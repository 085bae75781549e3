"""The stack's outputs: their names and shapes are promises to users. Pure, and without Pulumi."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypedDict

from components.plan import Plan
from components.rlinf import config_name, render_config
from config.base_config import BaseConfig
from config.models import Cluster
from config.reach import WayIn, way_in

_CONFIG_ON_HEAD = "/etc/rlinf-cloud-edge/rlinf"
_LAUNCHER = "/opt/rlinf-cloud-edge/libexec/launch.sh"


class Node(TypedDict):
    """One row of the output `nodes`."""

    name: str
    role: str
    """bootstrap, head or worker."""
    group: str | None
    """Labels of the RLinf node groups, separated by commas."""
    rank: int | None
    """RLinf node rank; none where the host is no Ray node."""
    overlay_ip: str
    """In direct mode, the host's own address."""
    device: str
    """Network device with that address."""
    state: str
    """enabled, disabled or lost; of a host that joins by a script, pending until its owner has run it, then joined."""
    reached: str
    """How Pulumi logs in: `user@address:port`, with the jump host; `join: script` where it never does."""


class Versions(TypedDict):
    """What runs on every host."""

    easytier: str | None
    """None in direct mode."""
    ray: str
    python: str | None
    """Python of Ray, to the part that the settings give; None where they give Ray's environment instead."""


class Outputs(TypedDict):
    """All outputs of a stack."""

    overlay_ips: dict[str, str]
    """Host name to overlay IP; in direct mode, to the host's own address."""
    rlinf_config: str
    """YAML text: the `cluster:` block for RLinf, or the base config with it."""
    nodes: list[Node]
    versions: Versions
    ray_address: str
    """The head's GCS on the overlay, `host:port`."""
    launch: str
    """The commands that start a training, as shell lines."""
    ssh_config: str
    """A fragment for ~/.ssh/config that reaches every host by its name."""
    readme: str
    """The stack's README in Markdown."""


def outputs(cluster: Cluster, plan: Plan, base: BaseConfig | None = None, arrived: Collection[str] = ()) -> Outputs:
    """The outputs of a stack whose gate has opened.

    Args:
        cluster: the settings.
        plan: made from them.
        base: the RLinf config that they name as their base.
        arrived: names of pending nodes that the gate has found nevertheless.
    """
    members = (replace(each, state="joined") if each.name in arrived else each for each in plan.members)
    plan = replace(plan, members=tuple(members))
    return Outputs(
        overlay_ips={member.name: member.ip for member in plan.members if member.state != "lost"},
        rlinf_config=render_config(cluster, base),
        nodes=nodes(cluster, plan),
        versions=versions(cluster),
        ray_address=plan.ray_address,
        launch=launch(cluster, plan),
        ssh_config=ssh_config(cluster),
        readme=readme(cluster, plan),
    )


def nodes(cluster: Cluster, plan: Plan) -> list[Node]:
    """The table of all hosts: bootstraps, nodes in the order of ranks, then those that take no part."""
    entries = {host.name: host for host in cluster.hosts}
    table: list[Node] = []
    for member in plan.members:
        way = way_in(cluster, entries[member.name])
        table.append(
            Node(
                name=member.name,
                role=member.role,
                group=",".join(member.groups) or None,
                rank=member.rank,
                overlay_ip=member.ip,
                device=member.device,
                state=member.state,
                reached=f"{way.user}@{way.endpoint}" if way is not None else "join: script",
            )
        )
    return table


def versions(cluster: Cluster) -> Versions:
    """The pinned versions."""
    return Versions(
        easytier=cluster.overlay.easytier.version if cluster.overlay else None,
        ray=cluster.ray.version,
        python=None if cluster.ray.venv else cluster.ray.python,
    )


def launch(cluster: Cluster, plan: Plan) -> str:
    """The commands that start a training on the head, in an environment equal to Ray's own."""
    return (
        "pulumi stack output ssh_config > ssh_config\n"
        f"ssh -F ssh_config {plan.head.name}\n"
        f"{_LAUNCHER} python examples/embodiment/train_embodied_agent.py"
        f" --config-path {_CONFIG_ON_HEAD} --config-name {config_name(cluster)}\n"
    )


def ssh_config(cluster: Cluster) -> str:
    """One `Host` block a host, jumps and bastions included; host keys are checked under the host's name."""
    found = (way_in(cluster, host) for host in cluster.hosts if not host.lost)
    ways = [way for way in found if way is not None]
    bastions: list[WayIn] = []
    for way in ways:
        if way.jump is not None and way.jump.is_bastion and way.jump not in bastions:
            bastions.append(way.jump)
    # No host of the cluster has a dot in its name.
    names = {bastion: f"jump.{index}" for index, bastion in enumerate(bastions, 1)}
    return "\n".join(_ssh_block(way, names) for way in (*bastions, *ways))


def _ssh_block(way: WayIn, bastions: Mapping[WayIn, str]) -> str:
    """How ssh reaches one host.

    Args:
        way: to the host.
        bastions: each bastion to what it is called here.
    """
    name = bastions.get(way, way.name)
    lines = [
        f"Host {name}",
        f"  HostName {way.address.replace('%', '%%')}",
        f"  Port {way.port}",
        f"  User {way.user}",
        f"  HostKeyAlias {name}",
    ]
    if way.credentials is not None and way.credentials.key_file is not None:
        key_file = json.dumps(way.credentials.key_file.replace("%", "%%"), ensure_ascii=False)
        lines += [f"  IdentityFile {key_file}", "  IdentitiesOnly yes"]
    if way.host_key is not None:
        # known_hosts without a file of its own: the key as the settings pin it.
        lines.append(f"  KnownHostsCommand /bin/echo {name} {way.host_key}")
    if way.jump is not None:
        lines.append(f"  ProxyJump {bastions.get(way.jump, way.jump.name)}")
    return "\n".join(lines) + "\n"


def readme(cluster: Cluster, plan: Plan) -> str:
    """The stack's README: a picture of the topology, the table of hosts, the commands."""
    picture = ["```mermaid", "graph TD"]
    there = [member for member in plan.members if member.state != "lost"]
    names = {member.name: f"n{index}" for index, member in enumerate(there)}
    for member in there:
        rank = "" if member.rank is None else f", rank {member.rank}"
        picture.append(f'  {names[member.name]}["{member.name}<br/>{member.role}{rank}<br/>{member.ip}"]')
    hubs = plan.bootstraps or (plan.head,)
    picture += [
        f"  {names[member.name]} --- {names[hub.name]}" for member in there for hub in hubs if member not in hubs
    ]
    picture.append("```")
    address = "address" if plan.direct else "overlay IP"
    table = [f"| host | role | group | rank | {address} | state | reached |", "|---|---|---|---|---|---|---|"]
    for row in nodes(cluster, plan):
        rank = "" if row["rank"] is None else str(row["rank"])
        cells = [row["name"], row["role"], row["group"] or "", rank, row["overlay_ip"], row["state"], row["reached"]]
        table.append("| " + " | ".join(cells) + " |")
    commands = ["```sh", launch(cluster, plan).rstrip(), "```"]
    title = f"# {cluster.overlay.network if cluster.overlay else 'rlinf-cloud-edge'}"
    return "\n".join([title, "", *picture, "", *table, "", "## Train", "", *commands, ""])
