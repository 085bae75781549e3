"""Membership of hosts in the EasyTier overlay: the bootstrap first, then every other host in parallel."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pulumi_command import remote

from components.easytier_config import render_toml
from components.host import encoded
from components.member import MemberHost
from components.plan import ECHO_PORT, RPC_PORT


def join_overlay(bootstrap: MemberHost, others: Sequence[MemberHost]) -> dict[str, remote.Command]:
    """Makes every host a member, once all hosts have passed their checks.

    Returns:
        Host name to the command that is done when a payload passes from that host to the bootstrap.
    """
    checked = [host.prepared for host in (bootstrap, *others)]
    first = _membership(bootstrap, bootstrap, depends_on=checked)
    # Waiting for the bootstrap is waiting for all checks, too; naming them once more would make N × N dependencies.
    rest = {host.member.name: _membership(host, bootstrap, depends_on=[host.prepared, first]) for host in others}
    return {bootstrap.member.name: first, **rest}


def _membership(host: MemberHost, bootstrap: MemberHost, depends_on: Sequence[pulumi.Resource]) -> remote.Command:
    cluster = host.args.settings.cluster
    return host.host.run(
        "overlay",
        {
            "REPAIR": cluster.repair or "",
            "OVERLAY_IP": host.member.overlay_ip,
            "DEVICE": cluster.overlay.device,
            "TOML_BASE64": encoded(render_toml(cluster.overlay, host.member)),
            "NETWORK_SECRET": host.args.settings.network_secret,
            "RPC_PORT": str(RPC_PORT),
            "ECHO_PORT": str(ECHO_PORT),
            "BOOTSTRAP_IP": bootstrap.member.overlay_ip,
            "PEERS": " ".join(host.member.peers),
            "EASYTIER_VERSION": cluster.overlay.easytier.version,
        },
        pulumi.ResourceOptions(parent=host, depends_on=list(depends_on)),
    )
