"""The network secret, whose value is never repeated."""

from __future__ import annotations

from config.faults import Fault

_SHORTEST = 16
_LONGEST = 128


def faults_of_secret(secret: str | None, *, is_encrypted: bool = True) -> list[Fault]:
    """What is wrong with the network secret.

    Args:
        secret: its value; None where there is none.
        is_encrypted: whether it is stored as a secret.
    """
    fix = 'pulumi config set --secret networkSecret "$(openssl rand -base64 32)"'
    if secret is None:
        return [Fault("networkSecret", None, "the overlay and Ray need a network secret", fix)]
    if not _SHORTEST <= len(secret) <= _LONGEST:
        rule = f"must have {_SHORTEST} to {_LONGEST} characters; it has {len(secret)}"
        return [Fault("networkSecret", None, rule, fix)]
    if not (secret.isascii() and secret.isprintable()):
        return [Fault("networkSecret", None, "must be printable ASCII on one line", fix)]
    if not is_encrypted:
        rule = "it stands in the stack's configuration in plain text, and whoever could read the file knows it"
        return [Fault("networkSecret", None, rule, fix)]
    return []
