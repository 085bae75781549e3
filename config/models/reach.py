"""How a host is reached."""

from __future__ import annotations

from pydantic import Field

from config.models.base import HostName, Integer, Line, Model, Port


class SshDefaults(Model):
    """What every host's `ssh` takes unless it says otherwise."""

    user: Line = "root"
    """The account to log in as: root, or a user with password-free sudo."""
    port: Port = 22
    """TCP port of sshd."""
    key_file: Line | None = None
    """Private key file here. Left out: the SSH agent, which keeps keys out of the state."""
    connect_timeout: Integer = Field(default=90, ge=5, le=3600)
    """Seconds for which an unreachable host is dialled again before the update fails for it."""


class Ssh(Model):
    """How we log in to a host. What is left out comes from `cluster.ssh`."""

    address: Line | None = None
    """Host name or IP address, as seen from here or, with `jump`, from the jump host. Left out where something else
    says how the host is reached."""
    host_key: Line | None = None
    """The host's public key, as in known_hosts without the address: `ssh-ed25519 AAAA...`."""
    jump: HostName | None = None
    """Name of the host to log in through: `bootstrap`, or any other host that is reached directly."""
    user: Line | None = None
    """The account to log in as."""
    port: Port | None = None
    """TCP port of sshd."""
    key_file: Line | None = None
    """Private key file on the machine that runs Pulumi."""
    connect_timeout: Integer | None = Field(default=None, ge=5, le=3600)
    """Seconds for which an unreachable host is dialled again."""
