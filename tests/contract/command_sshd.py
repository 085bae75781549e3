"""Real OpenSSH servers on loopback for the command contract, with keys and configurations of their own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.contract.command_harness import Json, eventually, secret

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
PASSPHRASE = "a passphrase, not a secret"


@dataclass(frozen=True)
class Key:
    """A key pair in two files."""

    path: Path

    @classmethod
    def make(cls, path: Path, kind: str = "ed25519", passphrase: str = "", form: str = "RFC4716") -> Key:
        """A new key pair; `form` PEM is OpenSSL's old format, else it is OpenSSH's own."""
        arguments = ["-q", "-t", kind, "-N", passphrase, "-f", str(path), "-C", "contract"]
        subprocess.run(["ssh-keygen", *arguments, *(["-m", "PEM"] if form == "PEM" else [])], check=True)
        return cls(path)

    @property
    def private(self) -> str:
        """The private key's text."""
        return self.path.read_text()

    @property
    def public(self) -> str:
        """The public key's line."""
        return self.path.with_suffix(".pub").read_text().strip()


@dataclass
class Keyring:
    """Keys of the contract: what servers have, and what clients log in with. Made when first asked for."""

    folder: Path

    @cached_property
    def host(self) -> Key:
        """The servers' key."""
        return Key.make(self.folder / "host")

    @cached_property
    def client(self) -> Key:
        """Every server lets this in."""
        return Key.make(self.folder / "client")

    @cached_property
    def encrypted(self) -> Key:
        """This too; it has a passphrase, and OpenSSH's format."""
        return Key.make(self.folder / "encrypted", passphrase=PASSPHRASE)

    @cached_property
    def encrypted_pem(self) -> Key:
        """This too; it has a passphrase, and OpenSSL's format."""
        return Key.make(self.folder / "encrypted-pem", "rsa", PASSPHRASE, "PEM")

    @cached_property
    def stranger(self) -> Key:
        """A key that no server knows."""
        return Key.make(self.folder / "stranger")

    @cached_property
    def authorized(self) -> Path:
        """The `authorized_keys` of every server."""
        path = self.folder / "authorized_keys"
        keys = (self.client, self.encrypted, self.encrypted_pem)
        path.write_text("".join(f"{key.public}\n" for key in keys))
        return path


@dataclass
class Sshd:
    """One OpenSSH server. Stock settings, but for what keeps it to this test: keys, address, no PAM."""

    port: int
    keyring: Keyring
    folder: Path
    options: tuple[str, ...] = ()
    host_keys: tuple[Key, ...] = ()
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> Sshd:
        """Starts the server and returns when it answers."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # what sshd wants of a root that starts it
        configuration = self.folder / f"sshd-{self.port}.conf"
        configuration.write_text("".join(f"{line}\n" for line in self._lines()))
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(configuration)], stderr=log)
        eventually(lambda: self._answers() or None, f"sshd on port {self.port} ({self.log})", 20)
        return self

    def stop(self) -> None:
        """Ends the server, and leaves its sessions alone."""
        if self._process:
            self._process.terminate()
            self._process.wait()
            self._process = None

    @property
    def log_file(self) -> Path:
        """Where the server logs."""
        return self.folder / f"sshd-{self.port}.log"

    @property
    def log(self) -> str:
        """What the server logged."""
        return self.log_file.read_text()

    @property
    def logins(self) -> int:
        """How many logins it let in."""
        return self.log.count("Accepted ")

    def connection(self, **changes: Any) -> Json:
        """A `connection` that works and gives up at once when it doesn't, with `changes`; `None` removes a field."""
        settings = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "privateKey": self.keyring.client.private,
            "hostKey": self.keyring.host.public,
            "dialErrorLimit": 0,
            "perDialTimeout": 15,
        }
        return {name: value for name, value in {**settings, **changes}.items() if value is not None}

    def command(self, create: str | None = None, *, over: Json | None = None, **inputs: Any) -> Json:
        """Inputs of a remote command on this server; `over` changes the connection."""
        commands = {"create": create} if create is not None else {}
        return {"connection": secret(self.connection(**(over or {}))), **commands, **inputs}

    def established(self) -> int:
        """How many TCP connections to the server are open, seen from the clients."""
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        return sum(fields[2].endswith(f":{self.port:04X}") and fields[3] == "01" for fields in map(str.split, lines))

    def _lines(self) -> list[str]:
        keys = self.host_keys or (self.keyring.host,)
        return [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            *(f"HostKey {key.path}" for key in keys),
            f"AuthorizedKeysFile {self.keyring.authorized}",
            "StrictModes no",
            "PidFile none",
            "UsePAM no",
            "PasswordAuthentication no",
            "Subsystem sftp internal-sftp",
            *_lenient(),
            *self.options,
        ]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"sshd ended: {self.log}"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False


def free_port() -> int:
    """A TCP port of loopback on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _lenient() -> list[str]:
    """Newer servers lock out addresses with failed logins; these tests fail on purpose, all from one address."""
    line = "PerSourcePenalties no"
    known = subprocess.run([SSHD, "-G", "-o", line], capture_output=True, check=False).returncode == 0
    return [line] if known else []
