"""The files of `scripts/` as a host gets them: packed, each set for its purpose. Pure, and without Pulumi."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"

_OF_CHECKS = ("check.sh", "accelerators.sh", "activation.sh", "lib.sh", "supervised.sh", "systemd.sh")
"""`check.sh` and what it reads."""
_OF_HEADS = ("gate.py", "gate.sh", "ray_nodes.py")
"""What only a head runs."""
_NOT_INSTALLED = ("check.sh", "accelerators.sh", "enter.sh", "join.sh")
"""What runs from elsewhere."""


def script(name: str) -> str:
    """The text of one file."""
    return (SCRIPTS / name).read_text(encoding="utf-8")


@functools.cache
def packed_checks() -> str:
    """What checks a host, in one line."""
    return _packed(path for path in _files() if path.name in _OF_CHECKS)


@functools.cache
def packed_scripts(*, leads: bool) -> str:
    """What is installed on a host, in one line.

    Args:
        leads: whether it may be the head.
    """
    return _packed(path for path in _installed() if leads or path.name not in _OF_HEADS)


@functools.cache
def packed_for_owners() -> str:
    """What checks and is installed on a host that is never the head, in lines that any editor takes."""
    packed = _packed(path for path in _files() if path.name not in ("enter.sh", "join.sh", *_OF_HEADS))
    return "".join(f"{packed[start : start + 76]}\n" for start in range(0, len(packed), 76))


@functools.cache
def scripts_digest() -> str:
    """A digest of what is installed: a changed script runs again, on every host."""
    digest = hashlib.sha256()
    for path in _installed():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _packed(paths: Iterable[Path]) -> str:
    """Files as a gzipped tar archive in base64; the same bytes for the same files.

    It is in the state of every host, twice, so what can be left out is.
    """
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
    return base64.b64encode(archive.getvalue()).decode()


def _installed() -> Sequence[Path]:
    return [path for path in _files() if path.name not in _NOT_INSTALLED]


def _files() -> Sequence[Path]:
    # What is alike stands together: it is packed the smaller.
    return sorted((path for path in SCRIPTS.iterdir() if path.is_file()), key=lambda path: (path.suffix, path.name))
