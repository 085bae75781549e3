"""Moto's objects behind the account, for what works beside its API in the same process."""

from __future__ import annotations

from typing import Any

ACCOUNT = "123456789012"
REGION = "us-east-1"
"""The region whose instances are hosts."""


def backend() -> Any:  # noqa: ANN401  # moto's own, which has no types to speak of
    """Moto's EC2 of this account and region."""
    from moto.ec2.models import ec2_backends  # noqa: PLC0415  # after the settings are made

    return ec2_backends[ACCOUNT][REGION]
