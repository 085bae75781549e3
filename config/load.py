"""Pulumi's configuration and secrets as validated settings.

The only module of `config` that knows Pulumi. It creates nothing and connects to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pulumi
from pydantic import ValidationError

from config.base_config import BaseConfig, read_base_config
from config.faults import Fault, SettingsError, from_validation, shown
from config.models import AwsDefaults, Cluster
from config.reach import way_in
from config.rules import faults_of, faults_of_secret
from config.rules.ssh import is_public_key
from config.salvage import in_doubt, salvaged
from config.shared import extended

# "The user has been told what to do", to Pulumi's Python host (`pulumi-language-python-exec`), which says no more then.
_USER_HAS_BEEN_TOLD = 32


class Refused(SystemExit):
    """The settings are wrong: ends the program after its message was shown."""

    def __init__(self, message: str) -> None:
        super().__init__(_USER_HAS_BEEN_TOLD)
        self.message = message


@dataclass(frozen=True)
class Settings:
    """All that a user has set, validated."""

    cluster: Cluster
    """The plain settings."""
    base_config: BaseConfig | None
    """The RLinf config that the settings name as their base."""
    network_secret: pulumi.Output[str]
    """EasyTier's network secret; Ray's token is derived from it. Always a Pulumi secret."""
    private_keys: dict[str, pulumi.Output[str]]
    """Host name to the content of its private key file; a Pulumi secret. A host without one uses the SSH agent."""
    public_key: str | None
    """The public half of the key that Pulumi logs in with, for the key pair of instances that are created; None where
    no such key pair is made."""


def load() -> Settings:
    """The settings of the selected stack.

    Raises:
        Refused: the settings are wrong; the message lists every fault.
    """
    config = pulumi.Config()
    try:
        cluster, base = read(
            config.get_object("cluster"),
            Path.cwd(),  # Pulumi runs a program in the folder of its Pulumi.yaml
            faults_of_secret(config.get("networkSecret")),
        )
        secret = config.require_secret("networkSecret")
        key = config.get_secret("sshPrivateKey")
        public_key = read_public_key(cluster)
        keys = {host.name: key for host in cluster.hosts} if key is not None else _key_files(cluster)
    except SettingsError as error:
        message = f"{pulumi.get_stack()}: {error}"
        pulumi.log.error(message)
        raise Refused(message) from None
    return Settings(cluster=cluster, base_config=base, network_secret=secret, private_keys=keys, public_key=public_key)


def read(raw: object, folder: Path, earlier: Iterable[Fault] = ()) -> tuple[Cluster, BaseConfig | None]:
    """The `cluster` object with the files that it names, validated.

    Args:
        raw: the object as YAML or JSON gives it; None where the key is absent.
        folder: with Pulumi.yaml, to which the files are relative.
        earlier: faults found elsewhere, reported together with these.

    Raises:
        SettingsError: with every fault.
    """
    whole, faults = extended(raw, folder)
    rlinf = _at(whole, "rlinf")
    name = _at(rlinf, "base_config")
    base, of_base = read_base_config(name, folder) if isinstance(name, str) else (None, [])
    return parse(whole, [*earlier, *faults, *of_base]), base


def _at(raw: object, key: str) -> object:
    return cast("dict[str, object]", raw).get(key) if isinstance(raw, dict) else None


def parse(raw: object, earlier: Iterable[Fault] = ()) -> Cluster:
    """The `cluster` object, validated.

    Args:
        raw: the object as YAML or JSON gives it; None where the key is absent.
        earlier: faults found elsewhere, reported together with these.

    Raises:
        SettingsError: with every fault.
    """
    faults = list(earlier)
    if raw is None:
        fix = "copy one of the examples in config/ into config/Pulumi.<stack>.yaml"
        raise SettingsError([*faults, Fault("cluster", None, "this key is required", fix)])
    try:
        cluster = Cluster.model_validate(raw)
    except ValidationError as error:
        faults += from_validation(error, Cluster, "cluster")
        rest = salvaged(raw, error)
        more = faults_of(rest) if rest is not None else []
        raise SettingsError([*faults, *(fault for fault in more if not in_doubt(fault, faults))]) from None
    faults += faults_of(cluster)
    if faults:
        raise SettingsError(faults)
    return cluster


def read_public_key(cluster: Cluster) -> str | None:
    """The public key that instances let in, from the settings or from the file that they name.

    Raises:
        SettingsError: there is none, or EC2 takes no such key.
    """
    shared = cluster.aws or AwsDefaults()
    if shared.key_name is not None or not any(host.aws is not None and not host.lost for host in cluster.hosts):
        return None
    key, given = "cluster.aws.public_key", shared.public_key
    if given is None and cluster.ssh.key_file is not None:
        given = f"{cluster.ssh.key_file}.pub"
    if given is None:
        rule = "instances let in the key that Pulumi logs in with, and its public half is not known"
        fix = "add it: the path of its .pub file, or its text as `ssh-add -L` prints it"
        raise SettingsError([Fault(key, None, rule, fix)])
    text = given
    if not given.startswith(("ssh-", "ecdsa-", "sk-")):
        try:
            text = Path(given).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            rule = f"must be a public key, or a file with one that is readable here: {reason}"
            raise SettingsError([Fault(key, shown(given), rule, "correct the path, or write the key itself")]) from None
    if not (text.startswith(("ssh-ed25519 ", "ssh-rsa ")) and is_public_key(text)):
        rule = "must be an Ed25519 or RSA public key, which are those that EC2 takes"
        raise SettingsError([Fault(key, shown(given), rule, "ssh-keygen -t ed25519 makes one")])
    return text


def _key_files(cluster: Cluster) -> dict[str, pulumi.Output[str]]:
    """The content of each host's key file; a file named twice is read once."""
    contents: dict[str, pulumi.Output[str]] = {}
    keys: dict[str, pulumi.Output[str]] = {}
    faults: list[Fault] = []
    for host in cluster.hosts:
        way = way_in(cluster, host)
        if way is None or way.key_file is None:
            continue
        name = way.key_file
        if name not in contents:
            try:
                contents[name] = pulumi.Output.secret(Path(name).expanduser().read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not a text file"
                rule = f"the private key of {host.name} must be readable here: {reason}"
                faults.append(Fault("ssh.key_file", name, rule, "correct the path, or remove it to use the agent"))
                continue
        keys[host.name] = contents[name]
    if faults:
        raise SettingsError(faults)
    return keys
