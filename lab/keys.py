"""SSH keys of a lab: the hosts' and the operator's, all made on this machine before anything boots."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.state import LabFiles
from lab.topology import LabHost

HOST_KEY_TYPES = ("ed25519", "ecdsa")
"""Like a cloud image, a host has more than one key, so that a client that pins one must ask for that one."""


def create(path: Path, kind: str, comment: str) -> None:
    """Makes a key pair without a passphrase, unless it is there.

    Args:
        path: of the private key; the public one gets `.pub` after it.
        kind: `ed25519` or `ecdsa`.
        comment: says whose key it is.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", comment, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def create_host_keys(files: LabFiles, host: LabHost) -> None:
    """Makes the host keys of one host."""
    for kind in HOST_KEY_TYPES:
        create(files.host(host.name) / f"ssh_host_{kind}_key", kind, f"root@{host.name}")


def public_key(private: Path) -> str:
    """The public key as it stands in known_hosts: type and key, without a comment."""
    kind, key, *_ = private.with_name(f"{private.name}.pub").read_text().split()
    return f"{kind} {key}"


def host_key(files: LabFiles, host: LabHost) -> str:
    """The public Ed25519 host key of one host: type and key."""
    return public_key(files.host_key(host.name))


def write_known_hosts(files: LabFiles, hosts: Sequence[LabHost]) -> None:
    """Writes all keys of all hosts, by name and address."""
    lines = [
        f"{host.name},{host.address} {public_key(files.host(host.name) / f'ssh_host_{kind}_key')}\n"
        for host in hosts
        for kind in HOST_KEY_TYPES
    ]
    files.known_hosts.write_text("".join(lines))
