"""Files that a local command left, as assets and as one archive, with the hashes Pulumi gives them."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable
from pathlib import Path

from lab.plugin_kit.values import Archive, Asset, Value

from .globs import matching_files

_CHECKSUM = slice(148, 156)
_DEVICES = slice(329, 345)


def assets_of(folder: Path, globs: Iterable[str]) -> dict[str, Value]:
    """The files under `folder` that `globs` choose: path relative to it, asset."""
    return {name: _asset(folder / name) for name in matching_files(folder, globs)}


def archive_of(assets: dict[str, Value]) -> Archive:
    """One archive of `assets`. Its hash is that of the tar file Go would write of them."""
    digest = hashlib.sha256()
    for name, asset in sorted(assets.items()):
        if isinstance(asset, Asset):
            content = Path(asset.text("path")).read_bytes()
            digest.update(_tar_header(name, len(content)) + content + bytes(-len(content) % tarfile.BLOCKSIZE))
    digest.update(bytes(2 * tarfile.BLOCKSIZE))
    return Archive({"assets": assets, "hash": digest.hexdigest(), "path": "", "uri": ""})


def _asset(path: Path) -> Asset:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Asset({"hash": digest, "path": str(path), "text": "", "uri": ""})


def _tar_header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    header = bytearray(entry.tobuf(tarfile.USTAR_FORMAT))
    # Go writes zero device numbers where Python leaves them empty.
    header[_DEVICES] = b"0000000\0" * 2
    header[_CHECKSUM] = b" " * 8
    header[_CHECKSUM] = b"%06o\0 " % sum(header)
    return bytes(header)
