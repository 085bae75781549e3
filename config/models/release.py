"""Pinned releases: where each comes from and what it must hash to."""

from __future__ import annotations

from pydantic import Field

from config import defaults
from config.defaults import Architecture
from config.models.base import Line, Model, Sha256, Version


class EasyTierRelease(Model):
    """The EasyTier release every host runs."""

    version: Version = defaults.EASYTIER_VERSION
    """The exact EasyTier version."""
    url: Line = defaults.EASYTIER_URL
    """URL template with `{version}` and `{arch}` (x86_64, aarch64); name a mirror here."""
    sha256: dict[Architecture, Sha256] = Field(default_factory=defaults.EASYTIER_SHA256.copy)
    """SHA-256 of the archive for each architecture in use."""


class UvRelease(Model):
    """The uv that builds the managed Ray environment."""

    version: Version = defaults.UV_VERSION
    """The exact uv version."""
    url: Line = defaults.UV_URL
    """URL template with `{version}` and `{arch}` (x86_64, aarch64); name a mirror here."""
    sha256: dict[Architecture, Sha256] = Field(default_factory=defaults.UV_SHA256.copy)
    """SHA-256 of the archive for each architecture in use."""
