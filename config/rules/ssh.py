"""Logins: host keys and jumps."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from config.faults import Fault, shown
from config.models import Bastion, Bootstrap, Cluster, RayHost
from config.reach import WayIn, way_in
from config.rules.hosts import keyed_hosts

_IN_FULL = "{address: …, user: …, host_key: …}"


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with host keys and jumps."""
    yield from _host_keys(cluster)
    yield from _jumps(cluster)


def _host_keys(cluster: Cluster) -> Iterator[Fault]:
    for key, host in keyed_hosts(cluster):
        way = way_in(cluster, host)
        if way is None:
            continue
        yield from _host_key(f"{key}.ssh", way)
        if way.jump is not None and way.jump.is_bastion:
            yield from _host_key(f"{key}.ssh.jump", way.jump)


def _host_key(key: str, way: WayIn) -> Iterator[Fault]:
    if way.host_key is not None and not is_public_key(way.host_key):
        rule = "must be a public key as in known_hosts, without the address: `ssh-ed25519 AAAA...`"
        fix = f"print it with: {way.show_host_key}, and compare it on the host"
        yield Fault(f"{key}.host_key", shown(way.host_key), rule, fix)


def is_public_key(text: str) -> bool:
    """Whether a text is a public key as OpenSSH writes it: type, key, and perhaps a comment."""
    kind, _, rest = text.partition(" ")
    blob = rest.partition(" ")[0]
    try:
        decoded = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        return False
    size = int.from_bytes(decoded[:4], "big")
    return bool(kind) and decoded[4 : 4 + size] == kind.encode()


def _jumps(cluster: Cluster) -> Iterator[Fault]:
    by_name = {host.name: host for host in cluster.hosts}
    for key, host in keyed_hosts(cluster):
        jump = host.ssh.jump
        if jump is None or isinstance(jump, Bastion):
            continue
        if jump not in by_name or jump == host.name:
            others = ", ".join(sorted(name for name in by_name if name != host.name))
            rule = "must name another host of this cluster"
            yield Fault(
                f"{key}.ssh.jump",
                jump,
                rule,
                f"write one of: {others}; or a bastion in full: {_IN_FULL}" if others else _IN_FULL,
            )
        elif by_name[jump].ssh.jump is not None:
            rule = f"a jump host is reached directly; {jump} itself is reached {_through(by_name[jump])}"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through a host that has no jump of its own")
        elif getattr(by_name[jump], "join", None) is not None:
            rule = f"a jump host is reached directly; {jump} itself joins by a script"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through a host with an ssh.address")
        elif by_name[jump].lost and not host.lost:
            rule = f"{jump} is lost, so nothing is reached through it"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through another host, or mark this one as lost as well")


def _through(host: Bootstrap | RayHost) -> str:
    jump = host.ssh.jump
    return f"through {jump.address if isinstance(jump, Bastion) else jump}"
