"""Ways in to a host beyond the lab's own: accounts with a password, accounts with a key of their own, other ports."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab import hosts
from lab.world import Lab

_SSHD = "/etc/ssh/sshd_config.d"


def with_password(lab: Lab, host: str, user: str, password: str) -> None:
    """Makes an account that logs in by password and by nothing else, with password-free sudo.

    Raises:
        LabError: the host is not running, or refuses.
    """
    _create(lab, host, user)
    hosts.must(lab.name, host, "chpasswd", stdin=f"{user}:{password}\n")
    rule = f"Match User {user}\n  PasswordAuthentication yes\n  PubkeyAuthentication no\nMatch all\n"
    _configure_sshd(lab, host, user, rule)
    _allow_sudo(lab, host, user)


def with_key(lab: Lab, host: str, user: str, public_key: str, *, sudo: bool = True) -> None:
    """Makes an account that logs in by this key.

    Args:
        lab: which one.
        host: its name.
        user: name of the account.
        public_key: its line in `authorized_keys`.
        sudo: whether it has password-free sudo; a bastion's account needs none.

    Raises:
        LabError: the host is not running, or refuses.
    """
    _create(lab, host, user)
    script = (
        'install -d -m 0700 -o "$1" -g "$1" "$2" && install -m 0600 -o "$1" -g "$1" /dev/stdin "$2/authorized_keys"'
    )
    hosts.must(lab.name, host, "sh", "-c", script, "sh", user, f"/home/{user}/.ssh", stdin=f"{public_key}\n")
    if sudo:
        _allow_sudo(lab, host, user)


def listen_also(lab: Lab, host: str, port: int) -> None:
    """Has a host's sshd listen at another port as well.

    Raises:
        LabError: the host is not running, or refuses.
    """
    _configure_sshd(lab, host, "ports", f"Port 22\nPort {port}\n")


def make_key(path: Path, passphrase: str) -> str:
    """Makes a key pair, and returns the public key's line."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.with_name(f"{path.name}.pub").read_text().strip()


def _create(lab: Lab, host: str, user: str) -> None:
    hosts.must(lab.name, host, "useradd", "--create-home", "--shell", "/bin/bash", user)


def _allow_sudo(lab: Lab, host: str, user: str) -> None:
    rule = f"{user} ALL=(ALL) NOPASSWD:ALL\n"
    hosts.must(lab.name, host, "install", "-m", "0440", "/dev/stdin", f"/etc/sudoers.d/90-{user}", stdin=rule)


def _configure_sshd(lab: Lab, host: str, name: str, text: str) -> None:
    hosts.must(lab.name, host, "install", "-m", "0644", "/dev/stdin", f"{_SSHD}/50-{name}.conf", stdin=text)
    hosts.must(lab.name, host, "sh", "-c", "sshd -t && kill -HUP $(pgrep -o -x sshd)")
