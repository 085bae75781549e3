"""Builds the archive: the locked wheel and `standin/` make two executables, and those a zip.

The same sources and lock give the same bytes: fixed order, times and modes, and no compression, which also
makes unpacking on a host a plain copy. The archive carries the digest of what it was made from as its
comment, so a second build sees at once that nothing is to be done.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from lab.easytier_release.standin import EASYTIER_VERSION, extension
from lab.paths import Cache
from lab.progress import step

FOLDER = "easytier-linux-x86_64"
RELEASE = EASYTIER_VERSION.partition("-")[0]
ARCHIVE_NAME = f"{FOLDER}-v{RELEASE}.zip"
"""The release asset's name, as upstream's."""

HERE = Path(__file__).resolve().parent
LOCK = HERE / "requirements.txt"
SOURCES = HERE / "standin"
PACKAGE = "easytier_standin"
SHEBANG = b"#!/usr/bin/python3 -IS\n"
"""Isolated, and without site-packages: what else a host has installed can't get in the way, nor cost time."""

EPOCH = (1980, 1, 1, 0, 0, 0)
MAIN = """\
import sys

if sys.version_info[:2] != (3, 11):
    sys.exit("{name}: this stand-in needs Python 3.11 as /usr/bin/python3; here it is " +
    sys.version.split()[0])

from {package}.{module} import run

run()
"""
"""The entry point inside an executable: checks the Python before it reads a line that an older one can't."""


class BuildError(Exception):
    """The archive can't be built; the text says why."""


def build(destination_zip: Path, uv: Path | None = None) -> Path:
    """Builds the archive, unless it is there and made from the same sources and lock.

    Args:
        destination_zip: where it goes; its folder is made.
        uv: the uv that fetches the wheel; the one of `script/bootstrap` when left out.

    Returns:
        `destination_zip`.

    Raises:
        BuildError: the wheel can't be had, or is not what the sources were written for.
    """
    origin = _origin()
    if _made_from(destination_zip) == origin:
        return destination_zip
    with step(f"Building a stand-in for {ARCHIVE_NAME} from PyPI's easytier-pyo3"):
        destination_zip.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".easytier-", dir=destination_zip.parent) as scratch:
            wheel = Path(scratch) / "wheel"
            _fetch(uv or Cache.from_environment().uv, wheel)
            fresh = Path(scratch) / ARCHIVE_NAME
            fresh.write_bytes(_archive(wheel, origin))
            fresh.chmod(0o644)
            fresh.replace(destination_zip)
    return destination_zip


def _origin() -> str:
    digest = hashlib.sha256()
    for path in (Path(__file__), LOCK, *_sources()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> list[Path]:
    return sorted(SOURCES.glob("*.py"))


def _made_from(archive: Path) -> str | None:
    """What an archive was made from. Its comment is its end, so an archive that was cut off has none."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.comment.decode(errors="replace")
    except (FileNotFoundError, zipfile.BadZipFile):
        return None


def _fetch(uv: Path, target: Path) -> None:
    command: list[str | os.PathLike[str]] = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    command += [
        "--only-binary",
        ":all:",
        "--python-platform",
        "x86_64-manylinux_2_28",
        "--python-version",
        "3.11",
    ]
    command += ["--python", sys.executable, "--target", target, "--requirements", LOCK]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"uv can't fetch the wheel that {LOCK} names: {error}") from error
    if done.returncode:
        raise BuildError(f"uv can't fetch the wheel that {LOCK} names:\n{done.stderr.strip()}")


def _archive(wheel: Path, origin: str) -> bytes:
    core = next(wheel.glob("easytier_pyo3/*.so")).read_bytes()
    # The version is put together at run time; the paths of the sources it was compiled from name the commit.
    if f"/{EASYTIER_VERSION.partition('-')[2][:7]}/".encode() not in core:
        raise BuildError(f"the wheel that {LOCK} names does not carry EasyTier {EASYTIER_VERSION}")
    licences = {f"licenses/{path.name}": path.read_bytes() for path in wheel.glob("*.dist-info/licenses/*")}
    executables = {
        "easytier-core": _executable("easytier-core", "core_main", {extension.MEMBER: core} | licences),
        "easytier-cli": _executable("easytier-cli", "cli_main", {}),
    }
    members = {f"{FOLDER}/{name}": content for name, content in executables.items()}
    return _zip(members, mode=0o755, comment=origin.encode())


def _executable(name: str, module: str, extra: Mapping[str, bytes]) -> bytes:
    members = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in _sources()}
    members["__main__.py"] = MAIN.format(name=name, package=PACKAGE, module=module).encode()
    return SHEBANG + _zip(members | dict(extra), mode=0o644)


def _zip(members: Mapping[str, bytes], mode: int, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = comment
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3  # Unix, so that the mode counts
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, members[name])
    return buffer.getvalue()
