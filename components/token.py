"""Ray's authentication token, derived from the network secret, so that a user sets one secret. Pure."""

from __future__ import annotations

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def ray_token(network_secret: str) -> str:
    """The token: 64 hexadecimal digits, HKDF-SHA256 (RFC 5869) of the network secret.

    Ray's token does not reveal the network secret, and a new network secret makes a new token.
    """
    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"rlinf-cloud-edge: ray authentication token")
    return derive.derive(network_secret.encode()).hex()
