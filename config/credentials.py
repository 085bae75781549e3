"""Keys and secrets that logins prove themselves with, read and checked before anything is dialled.

Knows no Pulumi: where secrets are kept is the caller's. None of them is in a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

from config.faults import Fault
from config.models import Bastion, Cluster, Credentials
from config.rules.hosts import keyed_hosts

PRIVATE_KEY = "sshPrivateKey"
"""Name of the secret that holds a private key for all logins without credentials of their own."""

Secret = Callable[[str], "str | None"]
"""Name of a value of the stack's configuration to the value; None where there is none."""


@dataclass(frozen=True)
class Proof:
    """What a login proves itself with, in plain text."""

    private_key: str | None = field(default=None, repr=False)
    key_passphrase: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


def read_credentials(
    cluster: Cluster, secret: Secret, is_secret: Callable[[str], bool]
) -> tuple[Mapping[Credentials | None, Proof], list[Fault]]:
    """What each login of validated settings proves itself with, and what is wrong with it.

    Args:
        cluster: the settings.
        secret: finds a value of the stack's configuration.
        is_secret: whether a value is encrypted there.

    Returns:
        `WayIn.credentials` to the proof. Credentials of lost hosts are not looked at.
    """
    read = _Reader(secret, is_secret)
    # What else there is for all logins stands in `cluster.ssh`: a key in the configuration takes its file's place.
    proofs: dict[Credentials | None, Proof] = {None: Proof()}
    proofs[cluster.ssh.credentials] = read.proof("cluster.ssh", cluster.ssh, secret(PRIVATE_KEY))
    for key, credentials in _own_credentials(cluster):
        if credentials not in proofs:
            proofs[credentials] = read.proof(key, credentials, None)
    return proofs, read.faults


def _own_credentials(cluster: Cluster) -> Iterator[tuple[str, Credentials]]:
    """Every key of a host under which credentials are given, with them."""
    for key, host in keyed_hosts(cluster):
        if host.lost:
            continue
        if host.ssh.credentials is not None:
            yield f"{key}.ssh", host.ssh.credentials
        if isinstance(host.ssh.jump, Bastion) and host.ssh.jump.credentials is not None:
            yield f"{key}.ssh.jump", host.ssh.jump.credentials


class _Reader:
    """Reads credentials, and keeps what is wrong with them."""

    def __init__(self, secret: Secret, is_secret: Callable[[str], bool]) -> None:
        self._secret, self._is_secret = secret, is_secret
        self.faults: list[Fault] = []

    def proof(self, key: str, given: Credentials, configured: str | None) -> Proof:
        """What credentials stand for.

        Args:
            key: under which they are given.
            given: the credentials.
            configured: a private key in place of a file's.
        """
        before = len(self.faults)
        passphrase = self._value(f"{key}.key_passphrase_secret", given.key_passphrase_secret)
        password = self._value(f"{key}.password_secret", given.password_secret)
        where, private_key = PRIVATE_KEY, configured
        if configured is not None:
            self._must_be_encrypted(PRIVATE_KEY, PRIVATE_KEY)
        elif given.key_file is not None:
            where, private_key = f"{key}.key_file", self._file(f"{key}.key_file", given.key_file)
        elif given.key_passphrase_secret is not None:
            rule = "a passphrase is a key's, and there is no key_file beside it"
            self.faults.append(Fault(f"{key}.key_passphrase_secret", None, rule, "add key_file, or remove it"))
        proof = Proof(private_key, passphrase, password)
        if private_key is not None and len(self.faults) == before:
            shown = None if where == PRIVATE_KEY else given.key_file
            self.faults += _faults_of_key(where, shown, private_key, passphrase)
        return proof

    def _value(self, where: str, name: str | None) -> str | None:
        if name is None:
            return None
        value = self._secret(name)
        if value is None:
            rule = "names a secret of this stack's configuration, and there is none of that name"
            fix = "pulumi config set --secret NAME, with the name that stands here; it asks for the value"
            self.faults.append(Fault(where, None, rule, fix))
            return None
        self._must_be_encrypted(where, name)
        if not value or not value.isprintable():
            self.faults.append(Fault(where, None, "the secret that it names must be one line of text", "set it anew"))
        return value

    def _must_be_encrypted(self, where: str, name: str) -> None:
        if not self._is_secret(name):
            rule = "its value stands in the stack's configuration in plain text"
            fix = "pulumi config set --secret NAME; whoever could read the file knows the old value"
            self.faults.append(Fault(where, None, rule, fix))

    def _file(self, where: str, name: str) -> str | None:
        try:
            return Path(name).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            rule = f"the private key must be readable here: {reason}"
            self.faults.append(Fault(where, name, rule, "correct the path, or remove it to use the agent"))
            return None


def _faults_of_key(where: str, shown: str | None, text: str, passphrase: str | None) -> Iterator[Fault]:
    """What is wrong with a private key, or with the passphrase for it."""
    content = text.encode()
    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in content else load_pem_private_key
    try:
        load(content, None)
        encrypted = False
    except TypeError:
        encrypted = True
    except ValueError:
        rule = "must be a private key in OpenSSH's format or PEM"
        yield Fault(where, shown, rule, "give the key without .pub, or make one with ssh-keygen")
        return
    except UnsupportedAlgorithm:
        return  # the plugin may know it
    if passphrase is None:
        if encrypted:
            fix = "pulumi config set --secret NAME, and key_passphrase_secret: NAME beside it; or use the SSH agent"
            yield Fault(where, shown, "the private key is encrypted, and nothing gives its passphrase", fix)
    elif not encrypted:
        yield Fault(where, shown, "the private key has no passphrase, and one is given", "remove key_passphrase_secret")
    else:
        try:
            load(content, passphrase.encode())
        except ValueError:
            rule = "the passphrase that key_passphrase_secret names does not open the key"
            yield Fault(where, shown, rule, "pulumi config set --secret NAME, with the name that stands there")
        except UnsupportedAlgorithm:
            return
