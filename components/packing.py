"""The files of `scripts/` as a host gets them: packed, each set for its purpose. Pure, and without Pulumi."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"

_OF_CHECKS = ("check.sh", "accelerators.sh", "activation.sh", "lib.sh", "supervised.sh", "systemd.sh")
"""`check.sh` and what it reads. It is in the state of every host, so it is kept small."""
_NOT_INSTALLED = ("check.sh", "accelerators.sh", "enter.sh", "join.sh")
"""What runs from elsewhere."""


def script(name: str) -> str:
    """The text of one file."""
    return (SCRIPTS / name).read_text(encoding="utf-8")


@functools.cache
def packed_checks() -> str:
    """What checks a host."""
    return _packed([path for path in _files() if path.name in _OF_CHECKS])


@functools.cache
def packed_scripts() -> str:
    """What is installed on a host."""
    return _packed(_installed())


@functools.cache
def packed_all() -> str:
    """What checks a host and is installed there."""
    return _packed([path for path in _files() if path in _installed() or path.name in _OF_CHECKS])


@functools.cache
def scripts_digest() -> str:
    """A digest of what is installed: a changed script runs again, on every host."""
    digest = hashlib.sha256()
    for path in _installed():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _packed(paths: Sequence[Path]) -> str:
    """Files as a gzipped tar archive in base64; the same bytes for the same files."""
    archive = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=archive, mode="wb", mtime=0, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in paths:
            entry = tarfile.TarInfo(path.name)
            content = path.read_bytes()
            entry.size, entry.mode = len(content), 0o755 if path.suffix == ".sh" else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return base64.encodebytes(archive.getvalue()).decode()


def _installed() -> Sequence[Path]:
    return [path for path in _files() if path.name not in _NOT_INSTALLED]


def _files() -> Sequence[Path]:
    return sorted(path for path in SCRIPTS.iterdir() if path.is_file())
