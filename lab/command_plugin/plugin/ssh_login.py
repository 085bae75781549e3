"""Keys, agents, passwords and host keys: what one SSH login needs, prepared before anything is dialled."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import asyncssh

from lab.plugin_kit.operation import FailedError

from .connection import Connection
from .go_text import error_text

# Offered after the wanted one, so that a server with another type of key shows it instead of hanging up.
_OTHER_HOST_KEY_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


@dataclass(frozen=True, slots=True)
class Login:
    """What a login uses: keys or an agent, a password, and the one host key that is right (none: any)."""

    user: str
    keys: tuple[asyncssh.SSHKey, ...]
    agent_socket: str | None
    password: str | None
    host_key: asyncssh.SSHKey | None

    @property
    def host_key_algorithms(self) -> str | list[str]:
        """Host key algorithms in order of preference. For an RSA key it is SHA-1 alone, as in the original."""
        if self.host_key is None:
            return "*"
        wanted = self.host_key.get_algorithm()
        if wanted == "ssh-rsa":
            return [wanted]
        return [wanted, *(other for other in _OTHER_HOST_KEY_ALGORITHMS if other != wanted)]

    @property
    def methods(self) -> list[str]:
        """SSH authentication methods, in the original's order. An agent is not asked where a key is given."""
        with_password = ["password", "keyboard-interactive"] if self.password is not None else []
        with_key = ["publickey"] if self.keys or self.agent_socket else []
        return [*with_key, *with_password] if self.keys else [*with_password, *with_key]


def prepare(connection: Connection) -> Login:
    """Reads the keys of `connection` and finds its agent. Fails, without a retry, on what can't be read."""
    host_key = _host_key(connection.host_key) if connection.host_key is not None else None
    keys = (_private_key(connection),) if connection.private_key is not None else ()
    agent_socket = connection.agent_socket or os.environ.get("SSH_AUTH_SOCK") or None
    if agent_socket:
        _require_agent(agent_socket)
    return Login(connection.user, keys, agent_socket, connection.password, host_key)


class Client(asyncssh.SSHClient):
    """Answers one server's questions with one `Login`, and notes what was asked."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._offered = False
        self._password_asked = False
        self._connection: asyncssh.SSHClientConnection | None = None
        self._other_type = ""
        self.attempted = ["none"]

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Notes the connection."""
        self._connection = conn

    def validate_host_public_key(
        self,
        host: str,  # noqa: ARG002  # asyncssh passes it; the key alone counts
        addr: str,  # noqa: ARG002  # the same
        port: int,  # noqa: ARG002  # the same
        key: asyncssh.SSHKey,
    ) -> bool:
        """Only the given host key is right; without one, any is."""
        right = self._login.host_key
        if right is not None and key.get_algorithm() != right.get_algorithm():
            self._other_type = key.get_algorithm()
        return right is None or key == right

    @property
    def host_key_fault(self) -> str | None:
        """Why the server's host key can't be the given one, if that is known: another type, or another key."""
        right = self._login.host_key
        if right is None or self._connection is None:
            return None
        offered = self._other_type
        if right.get_algorithm() == "ssh-rsa" and self._connection.get_extra_info("server_version"):
            # Today's servers refuse at once what the original offers for an RSA key: its SHA-1 signature.
            offered = offered or "none of these"
        if not offered:
            return None
        return (
            f"ssh: no common algorithm for host key; we offered: [{right.get_algorithm()}], peer offered: [{offered}]"
        )

    async def public_key_auth_requested(self) -> list[asyncssh.SSHKey | asyncssh.SSHKeyPair] | None:
        """The given key, else every key of the agent; each is offered once."""
        self._note("publickey")
        if self._offered:
            return None
        self._offered = True
        if self._login.keys:
            return list(self._login.keys)
        if self._login.agent_socket is None:
            return None
        agent = await asyncssh.connect_agent(self._login.agent_socket)
        return list(await agent.get_keys())

    def password_auth_requested(self) -> str | None:
        """The password, once."""
        self._note("password")
        asked, self._password_asked = self._password_asked, True
        return None if asked else self._login.password

    def kbdint_auth_requested(self) -> str | None:
        """Keyboard-interactive login is tried where there is a password."""
        if "keyboard-interactive" in self.attempted or self._login.password is None:
            return None
        self._note("keyboard-interactive")
        return ""

    def kbdint_challenge_received(
        self,
        name: str,  # noqa: ARG002  # whatever is asked
        instructions: str,  # noqa: ARG002  # the same
        lang: str,  # noqa: ARG002  # the same
        prompts: Sequence[tuple[str, bool]],
    ) -> list[str]:
        """The password, whatever is asked."""
        return [self._login.password or ""] * len(prompts)

    def _note(self, method: str) -> None:
        if method not in self.attempted:
            self.attempted.append(method)


def _host_key(text: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError as error:
        raise FailedError("failed to parse host key: ssh: no key found") from error


def _private_key(connection: Connection) -> asyncssh.SSHKey:
    text, password = connection.private_key or "", connection.private_key_password
    try:
        key = asyncssh.import_private_key(text)
    except asyncssh.KeyEncryptionError as error:
        raise FailedError("x509: decryption password incorrect") from error
    except asyncssh.KeyImportError as error:
        if "passphrase" not in str(error).lower():
            raise FailedError("ssh: no key found") from error
    else:
        if password is not None:
            raise FailedError("ssh: key is not password protected")
        return key
    if password is None:
        raise FailedError("ssh: this private key is passphrase protected")
    try:
        return asyncssh.import_private_key(text, password)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise FailedError("x509: decryption password incorrect") from error


def _require_agent(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            raise FailedError(f"dial unix {path}: connect: {error_text(error)}") from error
