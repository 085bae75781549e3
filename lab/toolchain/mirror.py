"""Fills the folder that the lab's HTTP mirror serves: an EasyTier release, a uv release, and Ray's wheels.

Names and inner layouts are upstream's, so that the program downloads from the mirror exactly as it would from
upstream. It serves x86_64 hosts with Python 3.11, as the lab's are. Serving is not done here.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.paths import Cache
from lab.progress import note, step
from lab.toolchain.atomic import digest_of_file, digest_of_sources, made_from, make_once
from lab.toolchain.download import available, download
from lab.toolchain.versions import EASYTIER, RAY, UV

LOCKS = Path(__file__).parent / "locks"

EASYTIER_ARCHIVE = Path(f"easytier/v{EASYTIER}/easytier-linux-x86_64-v{EASYTIER}.zip")
"""Where the EasyTier release lies, below the mirror's root."""

UV_ARCHIVE = Path(f"uv/{UV}/uv-x86_64-unknown-linux-musl.tar.gz")
"""Where the uv release lies, below the mirror's root."""

WHEELS = Path("wheels")
"""Where Ray's wheels and those of all it needs lie, flat, below the mirror's root."""

_EASYTIER_RELEASE = (
    f"https://github.com/EasyTier/EasyTier/releases/download/v{EASYTIER}/easytier-linux-x86_64-v{EASYTIER}.zip"
)
_EASYTIER_OFFICIAL = "official download"
_UV_PLATFORM = "musllinux_1_1_x86_64"
_RAY_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_RAY_ABIS = ("cp311", "abi3", "none")


@dataclass(frozen=True)
class Mirror:
    """What the mirror serves.

    Attributes:
        root: the folder to serve as it is.
        easytier_sha256: of the EasyTier archive, in hexadecimal.
        uv_sha256: of the uv archive, in hexadecimal.
        substitutes: a sentence for each archive that is not upstream's own: what it is, and why.
    """

    root: Path
    easytier_sha256: str
    uv_sha256: str
    substitutes: list[str]


def ensure_mirror(cache: Cache | None = None) -> Mirror:
    """Makes whatever the mirror lacks; quick when it lacks nothing.

    Args:
        cache: the cache to fill; the one the environment names when left out.

    Raises:
        ValueError: `EASYTIER_RELEASE` names no EasyTier release archive.
        subprocess.CalledProcessError: a package could not be fetched.
    """
    cache = cache or Cache.from_environment()
    root = cache.mirror
    easytier_sentence = _ensure_easytier(cache)
    make_once(cache, (root / UV_ARCHIVE).parent, _lock_digest("uv"), lambda folder: _make_uv(folder, cache))
    make_once(cache, root / WHEELS, _lock_digest("ray"), lambda folder: _fetch_wheels(folder, cache))
    return Mirror(
        root=root,
        easytier_sha256=digest_of_file(root / EASYTIER_ARCHIVE),
        uv_sha256=digest_of_file(root / UV_ARCHIVE),
        substitutes=[
            *([easytier_sentence] if easytier_sentence else []),
            f"The mirror's uv {UV} archive holds the commands of PyPI's wheel in upstream's layout.",
        ],
    )


def easytier_given(environment: Mapping[str, str]) -> Path | None:
    """The archive that `EASYTIER_RELEASE` names, or None where it is not set.

    Raises:
        ValueError: it is no EasyTier release archive.
    """
    value = environment.get("EASYTIER_RELEASE")
    if not value:
        return None
    archive = Path(value).resolve()
    fault = easytier_fault(archive)
    if fault:
        raise ValueError(f"EASYTIER_RELEASE={value} {fault}; name a file like {EASYTIER_ARCHIVE.name}")
    return archive


def easytier_fault(archive: Path) -> str | None:
    """What keeps a file from being an EasyTier release archive for x86_64, or None."""
    if not archive.is_file():
        return "is not a file"
    if not zipfile.is_zipfile(archive):
        return "is not a zip archive"
    with zipfile.ZipFile(archive) as release:
        names = set(release.namelist())
    wanted = [f"easytier-linux-x86_64/{command}" for command in ("easytier-core", "easytier-cli")]
    missing = [name for name in wanted if name not in names]
    return f"lacks {' and '.join(missing)}" if missing else None


def repack_uv(wheel: Path, archive: Path) -> None:
    """Packs the commands of a uv wheel as upstream packs them; the same wheel gives the same bytes.

    Args:
        wheel: PyPI's uv, in its statically linked form.
        archive: the `.tar.gz` to write.

    Raises:
        KeyError: the wheel lacks a command.
    """
    top = archive.name.removesuffix(".tar.gz")
    with (
        zipfile.ZipFile(wheel) as source,
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        folder = tarfile.TarInfo(top)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        scripts = f"uv-{UV}.data/scripts"
        for command in ("uv", "uvx"):
            entry = tarfile.TarInfo(f"{top}/{command}")
            entry.size, entry.mode = source.getinfo(f"{scripts}/{command}").file_size, 0o755
            with source.open(f"{scripts}/{command}") as content:
                tar.addfile(entry, content)


def _ensure_easytier(cache: Cache) -> str:
    """Puts an EasyTier release into the mirror; returns a sentence about it, empty for the official one."""
    folder = (cache.mirror / EASYTIER_ARCHIVE).parent
    archive = easytier_given(os.environ)
    if archive is not None:
        origin = f"given {digest_of_file(archive)}"
        make_once(cache, folder, origin, lambda fresh: _copy_easytier(archive, fresh))
        return f"The mirror's EasyTier {EASYTIER} is the one in {archive}."
    present = made_from(folder)
    ours = f"ours {digest_of_sources(Path(__file__).parents[1] / 'easytier_release')}"
    if present == _EASYTIER_OFFICIAL or (present != ours and available(_EASYTIER_RELEASE)):
        make_once(cache, folder, _EASYTIER_OFFICIAL, _download_easytier)
        return ""
    make_once(cache, folder, ours, _build_easytier)
    return (
        f"The mirror's EasyTier {EASYTIER} is this project's own packing of the same core from PyPI, for "
        "hosts with Python 3.11: upstream's release can't be downloaded here."
    )


def _copy_easytier(archive: Path, folder: Path) -> None:
    shutil.copyfile(archive, folder / EASYTIER_ARCHIVE.name)


def _download_easytier(folder: Path) -> None:
    archive = folder / EASYTIER_ARCHIVE.name
    with step(f"Downloading the official EasyTier {EASYTIER}"):
        download(_EASYTIER_RELEASE, archive)
    fault = easytier_fault(archive)
    if fault:
        raise OSError(f"what {_EASYTIER_RELEASE} gave {fault}")
    note(f"upstream publishes no checksum; SHA-256 of what came: {digest_of_file(archive)}")


def _build_easytier(folder: Path) -> None:
    from lab import easytier_release  # noqa: PLC0415  (only a machine without the official release needs it)

    easytier_release.build(folder / EASYTIER_ARCHIVE.name)


def _make_uv(folder: Path, cache: Cache) -> None:
    with step(f"Packing a uv {UV} release from PyPI"):
        _pip_download(cache, "uv", folder, ("--platform", _UV_PLATFORM))
        [wheel] = folder.glob("uv-*.whl")
        repack_uv(wheel, folder / UV_ARCHIVE.name)
        wheel.unlink()


def _fetch_wheels(folder: Path, cache: Cache) -> None:
    with step(f"Fetching the wheels of Ray {RAY} from PyPI (about 110 MB)"):
        options = ["--python-version", "3.11", "--implementation", "cp"]
        for abi in _RAY_ABIS:
            options += ["--abi", abi]
        for tag in _RAY_PLATFORMS:
            options += ["--platform", tag]
        _pip_download(cache, "ray", folder, options)


def _pip_download(cache: Cache, lock: str, folder: Path, options: list[str] | tuple[str, ...]) -> None:
    subprocess.run(
        [
            *(cache.root / "tools" / "bin" / "python", "-m", "pip", "download"),
            *(
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--require-hashes",
                "--only-binary",
                ":all:",
            ),
            *options,
            *("--dest", folder, "-r", LOCKS / f"{lock}.txt"),
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def _lock_digest(lock: str) -> str:
    return digest_of_file(LOCKS / f"{lock}.txt")
