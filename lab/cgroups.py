"""The control groups of a lab: by them, each of its processes is found, whoever started it and whenever.

A group is kept in every hierarchy that systemd uses (version 2, and version 1's `name=systemd` where it is there),
because a booted host's systemd manages the groups below its own. No resource is limited.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lab.errors import LabError
from lab.polling import wait_for

ROOT = "rlinf-cloud-edge-lab"
"""The group of all labs."""


def hierarchies() -> list[Path]:
    """The mount points of the hierarchies in which groups are kept.

    Raises:
        LabError: this machine has none mounted.
    """
    found: list[Path] = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(Path(where))
    if not found:
        raise LabError("no control group hierarchy is mounted that systemd could use; the lab's hosts need one")
    return found


def folders(group: str) -> list[Path]:
    """The folders of a group, one for each hierarchy.

    Args:
        group: its path below the group of all labs, such as `demo/edge-1`.
    """
    return [hierarchy / ROOT / group for hierarchy in hierarchies()]


def create(group: str) -> list[Path]:
    """Makes a group where it is not there.

    Returns:
        Its folders; a process joins by writing its pid to `cgroup.procs` in each.
    """
    made = folders(group)
    for folder in made:
        folder.mkdir(parents=True, exist_ok=True)
    return made


def join(group: str) -> None:
    """Moves the calling process into a group, made where it is not there."""
    for folder in create(group):
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def pids(group: str) -> set[int]:
    """The processes in a group and in all groups below it."""
    return {pid for folder in folders(group) for pid in _pids(folder)}


def destroy(group: str, limit: float = 15) -> None:
    """Kills every process in a group and below it, and removes the groups.

    Args:
        group: its path below the group of all labs.
        limit: seconds to wait for the processes to be gone.

    Raises:
        LabError: some were not gone in time.
    """

    def gone() -> bool | None:
        # Again and again as a whole: a process may have been on its way into the group.
        _kill_members(group)
        for folder in folders(group):
            _remove(folder)
        return None if any(folder.exists() for folder in folders(group)) else True

    if wait_for(gone, limit) is None:
        raise LabError(f"processes of the lab can't be ended: {sorted(pids(group))} (control group {ROOT}/{group})")
    for parent in folders(""):
        # Other labs may be in it.
        with suppress(OSError):
            parent.rmdir()


def _kill_members(group: str) -> None:
    """Kills what is in a group now, this process excepted."""
    handles: dict[int, int] = {}
    for pid in pids(group) - {os.getpid()}:
        with suppress(ProcessLookupError):
            handles[pid] = os.pidfd_open(pid)
    try:
        # Read again with the handles open: one that had ended meanwhile may have left its pid to a stranger.
        for pid in pids(group) & handles.keys():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[pid], signal.SIGKILL)
    finally:
        for handle in handles.values():
            os.close(handle)


def _pids(folder: Path) -> Iterator[int]:
    for path in _folders_below(folder):
        # A group may vanish while it is read.
        with suppress(OSError):
            yield from (int(line) for line in (path / "cgroup.procs").read_text().split() if line != "0")


def _folders_below(folder: Path) -> Iterator[Path]:
    """A folder and all below it, the deepest first. Those that vanish meanwhile are passed over."""
    for path, _, _ in os.walk(folder, topdown=False):
        yield Path(path)


def _remove(folder: Path) -> None:
    """Removes a folder and all below it, as far as they are empty of processes."""
    for path in _folders_below(folder):
        with suppress(OSError):
            path.rmdir()
