"""Folders that are either whole or not there, and made once however many runs want them.

A folder is built under another name and renamed when it is complete; a lock that the kernel drops with its
holder keeps a second run waiting. What an interrupted build left is cleared by the next one.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from lab.paths import Cache
from lab.progress import note

MADE_FROM = ".made-from"
"""The file in each made folder that says what it was made from."""


@contextmanager
def locked(cache: Cache, name: str) -> Generator[None, None, None]:
    """Keeps every other run on this cache out of the same work until the block ends.

    Args:
        cache: where the lock file lives.
        name: of the work, fit for a file name.
    """
    cache.locks.mkdir(parents=True, exist_ok=True)
    with (cache.locks / name).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"waiting for another run that is at the same work ({name})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def made_from(folder: Path) -> str | None:
    """What a folder was made from, or None where it is not there or not whole."""
    try:
        return (folder / MADE_FROM).read_text()
    except FileNotFoundError:
        return None


def make_once(cache: Cache, folder: Path, origin: str, make: Callable[[Path], None]) -> Path:
    """Makes a folder unless it is there and made from the same.

    Args:
        cache: whose locks are used.
        folder: to be there, whole, in the end; one that was made from something else is replaced.
        origin: what it is made from: a version, a digest.
        make: fills the empty folder that it is given. When it raises, `folder` stays as it was.

    Returns:
        `folder`.
    """
    if made_from(folder) == origin:
        return folder
    with locked(cache, str(folder.relative_to(cache.root)).replace("/", "-")):
        if made_from(folder) == origin:
            return folder
        fresh = folder.with_name(f".{folder.name}.new")
        stale = folder.with_name(f".{folder.name}.old")
        for leftover in (fresh, stale):
            remove(leftover)
        fresh.mkdir(parents=True)
        try:
            make(fresh)
            (fresh / MADE_FROM).write_text(origin)
            if folder.exists():
                folder.rename(stale)
            fresh.rename(folder)
        finally:
            for leftover in (fresh, stale):
                remove(leftover)
    return folder


def remove(folder: Path) -> None:
    """Removes a folder and all that is in it, if it is there."""
    if folder.exists():
        shutil.rmtree(folder)


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digest_of_tree(folder: Path) -> str:
    """A digest that changes when any file below a folder does, told by name, size and time of change.

    Quick enough for thousands of files, as nothing is read; copies of one tree have different digests.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    lines: list[str] = []
    for path in _files(folder):
        status = path.lstat()
        lines.append(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns} {status.st_mode:o}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digest_of_sources(folder: Path) -> str:
    """A digest of the contents of all files below a folder; copies of one tree have the same."""
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder)} {digest_of_file(path)}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """All files and links below a folder but those that Python compiles by itself, in order."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    return sorted(
        path
        for path in folder.rglob("*")
        if (path.is_file() or path.is_symlink()) and "__pycache__" not in path.relative_to(folder).parts
    )
