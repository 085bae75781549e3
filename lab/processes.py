"""Processes known by pid and start time, so that a pid the kernel gave to someone else is never touched."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process, for as long as this machine runs.

    Attributes:
        pid: its id.
        started: when it started, in clock ticks since boot (field 22 of /proc/PID/stat).
        boot: the id of the boot of this machine in which it started.
    """

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this pid now, or None where there is none (or only a dead one)."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The name, in parentheses, may hold anything; what follows it is plain.
        fields = stat[stat.rindex(")") + 2 :].split()
        if fields[0] in "ZX":
            return None
        return cls(pid, int(fields[19]), boot_id())

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return Process.of(self.pid) == self

    def kill(self) -> None:
        """Ends it at once if it still runs. The pid is held by a handle meanwhile, so that it can't be another's."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)


def boot_id() -> str:
    """The id of the running boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def seconds_running(process: Process) -> float:
    """How long ago a process of this boot started, in seconds."""
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return uptime - process.started / os.sysconf("SC_CLK_TCK")
