"""Pulumi's configuration and secrets as validated settings.

The only module of `config` that knows Pulumi. It creates nothing and connects to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pulumi
from pulumi.runtime.config import is_config_secret
from pydantic import ValidationError

from config import credentials
from config.base_config import BaseConfig, read_base_config
from config.faults import Fault, SettingsError, from_validation
from config.models import Cluster, Credentials
from config.public_key import read_public_key
from config.rules import faults_of, faults_of_secret
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
class Proof:
    """What a login proves itself with, each a Pulumi secret; without any, the SSH agent is asked."""

    private_key: pulumi.Output[str] | None = None
    key_passphrase: pulumi.Output[str] | None = None
    password: pulumi.Output[str] | None = None


@dataclass(frozen=True)
class Settings:
    """All that a user has set, validated."""

    cluster: Cluster
    """The plain settings."""
    base_config: BaseConfig | None
    """The RLinf config that the settings name as their base."""
    network_secret: pulumi.Output[str]
    """EasyTier's network secret; Ray's token is derived from it. Always a Pulumi secret."""
    proofs: Mapping[Credentials | None, Proof]
    """Credentials of a login to what it proves itself with: Pulumi secrets."""
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
            faults_of_secret(config.get("networkSecret"), is_encrypted=_is_secret("networkSecret")),
        )
        proofs, faults = credentials.read_credentials(cluster, config.get, _is_secret)
        if faults:
            raise SettingsError(faults)
        public_key = read_public_key(cluster)
    except SettingsError as error:
        message = f"{pulumi.get_stack()}: {error}"
        pulumi.log.error(message)
        raise Refused(message) from None
    return Settings(
        cluster=cluster,
        base_config=base,
        network_secret=config.require_secret("networkSecret"),
        proofs={given: _hidden(proof) for given, proof in proofs.items()},
        public_key=public_key,
    )


def _is_secret(name: str) -> bool:
    return is_config_secret(f"{pulumi.get_project()}:{name}")


def _hidden(proof: credentials.Proof) -> Proof:
    def secret(value: str | None) -> pulumi.Output[str] | None:
        return None if value is None else pulumi.Output.secret(value)

    return Proof(secret(proof.private_key), secret(proof.key_passphrase), secret(proof.password))


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
