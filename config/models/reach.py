"""How a host is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, StringConstraints, Tag

from config.models.base import Hidden, HostName, Integer, Line, Model, Port

# What can be part of a command or an ssh_config without quotes; `%` begins the zone of a link-local IPv6 address.
Address = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_:][0-9A-Za-z_.:%-]*$", max_length=253)]
# A key of Pulumi's configuration. It is never repeated, since a password may stand here by mistake.
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]

_NOT_HERE = "secrets don't stand in the settings"


class Credentials(Model):
    """What a login proves itself with. Where any of it is given, nothing of it comes from `cluster.ssh`."""

    key_file: Line | None = None
    """Private key file on the machine that runs Pulumi. With neither this nor a password: the SSH agent, which keeps
    keys out of the state."""
    key_passphrase_secret: Annotated[SecretName | None, Hidden()] = None
    """Name of the secret in the stack's configuration that holds the key file's passphrase: `pulumi config set --secret
    NAME`."""
    password_secret: Annotated[SecretName | None, Hidden()] = None
    """Name of the secret in the stack's configuration that holds the account's password: `pulumi config set --secret
    NAME`."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "password": (_NOT_HERE, "pulumi config set --secret NAME, and write password_secret: NAME"),
        "key_passphrase": (_NOT_HERE, "pulumi config set --secret NAME, and write key_passphrase_secret: NAME"),
        "private_key": (_NOT_HERE, "write key_file, or use the SSH agent"),
    }

    @property
    def credentials(self) -> Credentials | None:
        """These alone; None where nothing is given."""
        if not any((self.key_file, self.key_passphrase_secret, self.password_secret)):
            return None
        return Credentials(
            key_file=self.key_file,
            key_passphrase_secret=self.key_passphrase_secret,
            password_secret=self.password_secret,
        )


class SshDefaults(Credentials):
    """What every host's `ssh` takes unless it says otherwise."""

    user: Line = "root"
    """The account to log in as: root, or a user with password-free sudo."""
    port: Port = 22
    """TCP port of sshd."""
    connect_timeout: Integer = Field(default=90, ge=5, le=3600)
    """Seconds for which an unreachable host is dialled again before the update fails for it."""


class Login(Credentials):
    """A login. What is left out comes from `cluster.ssh`."""

    host_key: Line | None = None
    """The host's public key, as in known_hosts without the address: `ssh-ed25519 AAAA...`. By it, the machine is the
    same one at another address."""
    user: Line | None = None
    """The account to log in as."""
    port: Port | None = None
    """TCP port of sshd."""
    connect_timeout: Integer | None = Field(default=None, ge=5, le=3600)
    """Seconds for which an unreachable host is dialled again."""


class Bastion(Login):
    """A host to log in through that is not of the cluster; nothing is done on it."""

    address: Address
    """Host name or IP address as seen from here; IPv6 without brackets."""


def _kind(value: object) -> str:
    return "\0bastion" if isinstance(value, (dict, Bastion)) else "\0host"


class Ssh(Login):
    """How we log in to a host. What is left out comes from `cluster.ssh`."""

    address: Address | None = None
    """Host name or IP address, IPv6 without brackets, as seen from here or, with `jump`, from the jump host. Left out
    where something else says how the host is reached."""
    jump: (
        Annotated[Annotated[HostName, Tag("\0host")] | Annotated[Bastion, Tag("\0bastion")], Discriminator(_kind)]
        | None
    ) = None
    """The host to log in through: the name of a host of the cluster that is reached directly, such as `bootstrap`, or a
    bastion in full."""
