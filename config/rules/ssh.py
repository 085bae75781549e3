"""Logins: host keys and jumps."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from config.faults import Fault, shown
from config.models import Cluster
from config.rules.hosts import keyed_hosts


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with host keys and jumps."""
    yield from _host_keys(cluster)
    yield from _jumps(cluster)


def _host_keys(cluster: Cluster) -> Iterator[Fault]:
    for key, host in keyed_hosts(cluster):
        text = host.ssh.host_key
        if text is not None and not is_public_key(text):
            rule = "must be a public key as in known_hosts, without the address: `ssh-ed25519 AAAA...`"
            scanned = shown(host.ssh.address or "localhost")
            fix = f"print it with: ssh-keyscan -t ed25519 {scanned}, and compare it on the host"
            yield Fault(f"{key}.ssh.host_key", shown(text), rule, fix)


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
        if jump is None:
            continue
        if jump not in by_name or jump == host.name:
            others = ", ".join(sorted(name for name in by_name if name != host.name))
            rule = "must name another host of this cluster"
            yield Fault(f"{key}.ssh.jump", jump, rule, f"write one of: {others}" if others else "remove it")
        elif by_name[jump].ssh.jump is not None:
            rule = f"a jump host is reached directly; {jump} itself is reached through {by_name[jump].ssh.jump}"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through a host that has no jump of its own")
        elif getattr(by_name[jump], "join", None) is not None:
            rule = f"a jump host is reached directly; {jump} itself joins by a script"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through a host with an ssh.address")
        elif by_name[jump].lost and not host.lost:
            rule = f"{jump} is lost, so nothing is reached through it"
            yield Fault(f"{key}.ssh.jump", jump, rule, "jump through another host, or mark this one as lost as well")
