"""What is derived from the network secret, so that a user sets one secret. Pure."""

from __future__ import annotations

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def ray_token(network_secret: str) -> str:
    """Ray's authentication token: 64 hexadecimal digits.

    It does not reveal the network secret, and a new network secret makes a new token.
    """
    return _derived(network_secret, b"rlinf-cloud-edge: ray authentication token", 32)


def fingerprint(network_secret: str) -> str:
    """What tells one network secret from the next: 16 hexadecimal digits, which reveal nothing of it."""
    return _derived(network_secret, b"rlinf-cloud-edge: fingerprint of the network secret", 8)


def _derived(network_secret: str, what: bytes, length: int) -> str:
    """HKDF-SHA256 (RFC 5869), in hexadecimal."""
    derive = HKDF(algorithm=SHA256(), length=length, salt=None, info=what)
    return derive.derive(network_secret.encode()).hex()
