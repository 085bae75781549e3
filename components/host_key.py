"""The SSH host key of a machine that we create, known before anybody logs in to it.

A dynamic resource of Pulumi's own Python provider: made once, kept in the state as long as the host's entry is in the
settings, so that no other secret's change touches it. The private half is a secret, encrypted in the state.
"""

from __future__ import annotations

from typing import Any

import pulumi
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pulumi import dynamic


class _Maker(dynamic.ResourceProvider):
    """Makes a key pair, and never another one."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """A fresh Ed25519 pair; its public half is its id."""
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        ).decode()
        public = (
            key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
        )
        return dynamic.CreateResult(public, {**props, "private_key": private, "public_key": public})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        """Nothing changes it: another version of this module neither."""
        return dynamic.DiffResult(changes=False)


class HostKey(dynamic.Resource, module="cloudedge", name="HostKey"):
    """An Ed25519 host key pair."""

    private_key: pulumi.Output[str]
    """In OpenSSH's format; a secret."""
    public_key: pulumi.Output[str]
    """As in known_hosts: type and key."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        secret = pulumi.ResourceOptions(additional_secret_outputs=["private_key"])
        super().__init__(
            _Maker(),
            name,
            {"private_key": None, "public_key": None},
            pulumi.ResourceOptions.merge(opts, secret),
        )
