"""Pinned releases: where each comes from and what it must hash to."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from config import defaults
from config.defaults import Architecture
from config.models.base import Line, Model, Sha256, Version


class EasyTierRelease(Model):
    """The EasyTier release every host runs."""

    version: Version = defaults.EASYTIER_VERSION
    """The exact EasyTier version."""
    url: Line = defaults.EASYTIER_URL
    """URL template with `{version}` and `{arch}` (x86_64, aarch64); name a mirror here, or a file on the hosts:
    `file:///srv/mirror/easytier-linux-{arch}-v{version}.zip`."""
    sha256: dict[Architecture, Sha256] = Field(default_factory=defaults.EASYTIER_SHA256.copy)
    """SHA-256 of the archive for each architecture in use."""
    if_present: Literal["replace", "refuse"] = "replace"
    """What to do on a host with another EasyTier. `replace`: an earlier one of this program's is replaced, and those of
    others are left alone and never used. `refuse`: such a host is refused, and nothing is changed on it."""


class RayLock(Model):
    """A requirements file with the hashes of Ray and all it needs, as `uv pip compile --generate-hashes` makes it."""

    url: Line
    """Where every host gets the file; a file on the hosts by a `file://` URL."""
    sha256: Sha256
    """SHA-256 of the file."""


class UvRelease(Model):
    """The uv that builds the managed Ray environment."""

    version: Version = defaults.UV_VERSION
    """The exact uv version."""
    url: Line = defaults.UV_URL
    """URL template with `{version}` and `{arch}` (x86_64, aarch64); name a mirror here, or a file on the hosts by a
    `file://` URL."""
    sha256: dict[Architecture, Sha256] = Field(default_factory=defaults.UV_SHA256.copy)
    """SHA-256 of the archive for each architecture in use."""
