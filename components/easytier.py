"""Membership of hosts in the EasyTier overlay: a bootstrap first, then every other host in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_command import remote

from components.checks import equip
from components.easytier_config import render_toml
from components.host import encoded
from components.member import MemberHost
from config.defaults import ECHO_PORT, RPC_PORT


def join_overlay(hosts: Sequence[MemberHost]) -> Mapping[str, remote.Command]:
    """Makes every host a member: a bootstrap as soon as it is equipped, the others once the bootstraps are there.

    Args:
        hosts: all hosts, bootstraps first; those that we never log in to are passed over.

    Returns:
        Host name to the command that is done when a payload passes from that host to every bootstrap. In direct
        mode, where there is no overlay, when the host is equipped.

    Hosts that we log in to over the overlay are checked only once the bootstraps are in it, and so, when all is
    destroyed, equipped as long as they are.
    """
    hosts = [host for host in hosts if host.is_ours]
    if hosts[0].args.plan.direct:
        return {host.member.name: host.prepared for host in hosts}
    first, *others = (host for host in hosts if host.member.role == "bootstrap" and not host.member.is_absent)
    joined = {first.member.name: _membership(first, [first.prepared])}
    for bootstrap in others:
        joined[bootstrap.member.name] = _membership(bootstrap, [bootstrap.prepared, joined[first.member.name]])
    bootstraps = list(joined.values())
    equip(hosts, over=bootstraps)
    for host in hosts:
        if host.member.name not in joined:
            waits = bootstraps if not host.member.is_absent else []
            joined[host.member.name] = _membership(host, [host.prepared, *waits])
    return joined


def _membership(host: MemberHost, depends_on: Sequence[pulumi.Resource]) -> remote.Command:
    opts = pulumi.ResourceOptions(parent=host, depends_on=list(depends_on))
    return host.host.run("overlay", membership_settings(host), opts)


def membership_settings(host: MemberHost) -> dict[str, pulumi.Input[str]]:
    """What `overlay.sh` reads.

    Raises:
        ValueError: there is no overlay (direct mode).
    """
    cluster = host.args.settings.cluster
    overlay = cluster.overlay
    if overlay is None:
        raise ValueError("no overlay in direct mode")
    bootstraps = [each for each in host.args.plan.bootstraps if each is not host.member]
    if host.member.role == "bootstrap":
        # Of two bootstraps, the later one joins the earlier.
        bootstraps = [each for each in bootstraps if _before(host, each.name)]
    return {
        "OVERLAY_IP": host.member.ip,
        "DEVICE": overlay.device,
        "TOML_BASE64": host.args.of_place(lambda member: encoded(render_toml(overlay, member))),
        "NETWORK_SECRET": host.args.settings.network_secret,
        "RPC_PORT": str(RPC_PORT),
        "ECHO_PORT": str(ECHO_PORT),
        "BOOTSTRAP_IPS": " ".join(bootstrap.ip for bootstrap in bootstraps),
        "PEERS": host.args.of_place(lambda member: " ".join(member.peers)),
        "EASYTIER_VERSION": overlay.easytier.version,
    }


def _before(host: MemberHost, name: str) -> bool:
    names = [each.name for each in host.args.plan.bootstraps]
    return host.member.name in names and names.index(name) < names.index(host.member.name)
