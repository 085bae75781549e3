"""The join scripts: what the owner of a host runs who lets nobody log in, or not yet.

A join script is one file for bash: `scripts/join.sh`, then the settings and all other scripts as data. Settings stand
in here-documents whose delimiters are quoted, so that no value means anything to the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.easytier import membership_settings
from components.host import settings_text
from components.member import RayMember, head_of, overlay_needs
from components.packing import packed_for_owners, script
from components.ray_node import service_settings

# A line of settings has a `=`, and a line of base64 has no underscore: neither can be this.
_END = "END_OF_DATA"


def join_scripts(nodes: Sequence[RayMember]) -> pulumi.Output[dict[str, str]]:
    """Host name to join script, of every host that joins by one. A secret, since the scripts hold the network secret.

    They are known as soon as the head is checked, long before such a host has joined.

    Args:
        nodes: cloud nodes and edges.
    """
    head = head_of(nodes)
    joining = [node for node in nodes if node.join is not None and node.member.state != "lost"]
    return pulumi.Output.secret(_known({node.member.name: _script(node, head) for node in joining}))


def _script(node: RayMember, head: RayMember) -> pulumi.Output[str]:
    cluster = node.args.settings.cluster
    member = node.member
    does_ray = node.join == "script" and member.rank is not None
    ours = node.host if node.is_ours else None
    facts = {
        "NAME": member.name,
        "KIND": node.join or "",
        "NETWORK": cluster.overlay.network if cluster.overlay is not None else "",
        "DEVICE": member.device,
        "OVERLAY_IP": "" if node.args.plan.direct else member.ip,
        "RANK": str(member.rank) if does_ray else "",
        "LOGIN": ours.user if ours is not None else "",
        "SSH_PORT": str(ours.port) if ours is not None else "",
    }
    host = {"HOST": member.name}
    needs = node.needs if does_ray or node.args.plan.direct else overlay_needs(cluster, member)
    steps = {
        "check": {**host, **needs.checked},
        "prepare": {**host, **needs.given},
        "overlay": {**host, **membership_settings(node)} if not node.args.plan.direct else {},
        "ray": {**host, **service_settings(node, head), "JOIN": "script"} if does_ray else {},
    }
    return _known({name: _known(settings) for name, settings in steps.items()}).apply(
        lambda known: render(facts, known)
    )


def _known(values: Mapping[str, pulumi.Input[Any]]) -> pulumi.Output[dict[str, Any]]:
    """`Output.all`, which makes a list of nothing."""
    return pulumi.Output.all(**values) if values else pulumi.Output.from_input({})


def render(facts: Mapping[str, str], steps: Mapping[str, Mapping[str, str]]) -> str:
    """The text of a join script.

    Args:
        facts: what `join.sh` itself needs.
        steps: name of a script to its settings.
    """
    parts = [script("join.sh"), "\n# --- settings and scripts, as data\n\n"]
    parts += [f"readonly {name}={shlex.quote(value)}\n" for name, value in facts.items()]
    parts += [_data(f"settings_{name}", settings_text(settings)) for name, settings in steps.items()]
    parts += [_data("scripts", packed_for_owners()), '\nmain "$@"\n']
    return "".join(parts)


def _data(name: str, text: str) -> str:
    """A function of bash that prints a text of whole lines, byte for byte."""
    return f"\n{name}() {{\n  cat <<'{_END}'\n{text}{_END}\n}}\n"
