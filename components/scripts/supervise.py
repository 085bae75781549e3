"""supervise.py ACTION SERVICE: keeps a service running where there is no systemd to do it.

Runs as root, with the system's Python, 3.8 or later. `start` returns once the service is started, and leaves a
supervisor behind that has nothing to do with the login it came from: it starts the service again whenever it ends,
keeps what it prints in a log of limited size, and at its end leaves no process of the service, whatever sessions and
process groups these have put themselves into. `active`, `alive` and `present` tell by their exit code whether the
service runs, whether it is being looked after, and whether there is any process of it; `show` prints its process id
and what tells this start of it from others.

Whether a supervisor lives is told by the lock it holds on its record, so that no pid is trusted that another process
may have by now. What a killed supervisor has left running is found by the INVOCATION_ID in its environment.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pwd
import resource
import selectors
import signal
import sys
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from service_unit import Command, Unit, read_environment, read_unit

if TYPE_CHECKING:
    from collections.abc import Generator

UNITS = Path("/etc/rlinf-cloud-edge/services")
RUN = Path("/run/rlinf-cloud-edge")
LOGS = Path("/var/lib/rlinf-cloud-edge/log")

LOG_BYTES = 1 << 20
"""A log that is larger becomes the old one, of which there is one."""
RECORD_BYTES = 256
NOT_SO = 3
"""Exit code of a question whose answer is no."""
_KILL_SECONDS = 30

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# linux/prctl.h
_SET_CHILD_SUBREAPER, _CAPBSET_READ, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 36, 23, 24, 38
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def prctl(option: int, value: int) -> int:
    """Asks the kernel about, or changes, this process; -1 where it refuses."""
    return _prctl(option, ctypes.c_ulong(value), 0, 0, 0)


class Log:
    """What a service prints, and what its supervisor has to say about it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, data: bytes) -> None:
        """Adds to the log. On a full disk what can't be written is lost, and the service goes on."""
        with suppress(OSError):
            if os.fstat(self._file).st_size + len(data) > LOG_BYTES:
                self._path.rename(self._path.with_name(f"{self._path.name}.old"))
                os.close(self._file)
                self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(self._file, data)

    def say(self, text: str) -> None:
        """Adds a line of the supervisor's own."""
        self.write(f"[{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}] {text}\n".encode())


class Record:
    """The record of a service: `pid` of its supervisor, `main` process (0 while none runs), `invocation`."""

    def __init__(self, service: str) -> None:
        RUN.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._file = os.open(RUN / f"{service}.record", os.O_RDWR | os.O_CREAT, 0o600)

    def claim(self, limit: int = 0) -> bool:
        """Becomes the one that looks after the service, unless another does; waits up to that many seconds."""
        if limit:
            signal.signal(signal.SIGALRM, _interrupt)
            signal.alarm(limit)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if limit else fcntl.LOCK_NB))
        except (BlockingIOError, InterruptedError):
            return False
        finally:
            signal.alarm(0)
        return True

    @property
    def claimed(self) -> bool:
        """Whether a supervisor lives."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return False

    def read(self) -> tuple[int, int, str]:
        """`pid`, `main`, `invocation`; zeros and nothing where none was written."""
        text = os.pread(self._file, RECORD_BYTES, 0).decode()
        if not text:
            return 0, 0, ""
        pid, main, invocation = json.loads(text)
        return pid, main, invocation

    def write(self, main: int, invocation: str) -> None:
        """Replaces the record, in one call, so that nobody reads a part."""
        os.pwrite(self._file, json.dumps([os.getpid(), main, invocation]).ljust(RECORD_BYTES).encode(), 0)


class Supervisor:
    """The process that keeps a service running."""

    def __init__(self, unit: Unit, record: Record, log: Log) -> None:
        self._unit = unit
        self._record = record
        self._log = log
        self._stopping = False
        self._ended: dict[int, int] = {}
        self._output, self._printed = os.pipe()
        woken, wake = os.pipe()
        self._selector = selectors.DefaultSelector()
        for end in (self._output, woken, wake):
            os.set_blocking(end, False)
        for end in (self._output, woken):
            self._selector.register(end, selectors.EVENT_READ)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        signal.signal(signal.SIGTERM, self._stop)
        # Whatever a process of the service leaves behind becomes a child of this one.
        prctl(_SET_CHILD_SUBREAPER, 1)

    def run(self, started: int) -> None:
        """Runs the service until SIGTERM, or until its first start fails.

        Args:
            started: a file that is closed once the service runs, after a word that says so.
        """
        end_invocation(self._record.read()[2])
        first = True
        while not self._stopping:
            main = self._start()
            if main is not None and first:
                os.write(started, b"started")
            if first:
                os.close(started)
            if main is None and first:
                self._end_all()
                return
            first = False
            if main is not None:
                self._wait_for(main)
            self._end_all()
            if not self._stopping:
                self._log.say(f"starting again in {self._unit.restart_seconds:g} s")
                self._pause(self._unit.restart_seconds)
        self._log.say("stopped")

    def _start(self) -> int | None:
        """Starts the service once; the pid of its main process, None where something before it failed."""
        invocation = uuid.uuid4().hex
        self._record.write(0, invocation)
        for command in self._unit.start_pre:
            if self._wait_for(self._spawn(command, invocation)) != 0:
                return None
        main = self._spawn(self._unit.start, invocation)
        self._record.write(main, invocation)
        return main

    def _spawn(self, command: Command, invocation: str) -> int:
        pid = os.fork()
        if pid == 0:
            become(command, self._unit, invocation, self._printed)
        return pid

    def _wait_for(self, pid: int) -> int | None:
        """Waits until a process has ended; its exit code, None when asked to stop meanwhile."""
        while pid not in self._ended and not self._stopping:
            self._attend(None)
        if pid not in self._ended:
            return None
        status = self._ended.pop(pid)
        self._ended.clear()
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        if code != 0 or pid == self._record.read()[1]:
            self._log.say(f"process {pid} ended with {code if code >= 0 else signal.Signals(-code).name}")
        self._attend(0)
        return code

    def _end_all(self) -> None:
        """Ends every process of the service: first asked to, then killed."""
        _, main, invocation = self._record.read()
        self._record.write(0, invocation)
        deadline = time.monotonic() + self._unit.stop_seconds
        for pid in self._asked(main):
            kill(pid, signal.SIGTERM)
        while self._asked(main) and time.monotonic() < deadline:
            self._attend(0.1)
        deadline = time.monotonic() + _KILL_SECONDS
        while time.monotonic() < deadline:
            left = descendants(os.getpid())
            if not left:
                return
            for pid in left:
                kill(pid, signal.SIGKILL)
            self._attend(0.05)
        self._log.say("some of its processes can't be ended")

    def _asked(self, main: int) -> set[int]:
        """The processes that are left of those that are asked to end."""
        there = descendants(os.getpid())
        return there & {main} if self._unit.main_first else there

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < deadline:
            self._attend(deadline - time.monotonic())

    def _attend(self, seconds: float | None) -> None:
        """Waits up to that long for something to happen, and sees to it."""
        for key, _ in self._selector.select(seconds):
            with suppress(BlockingIOError):
                data = os.read(key.fd, 1 << 16)
                if key.fd == self._output:
                    self._log.write(data)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                self._ended[pid] = status

    def _stop(self, *_: object) -> None:
        self._stopping = True


def become(command: Command, unit: Unit, invocation: str, output: int) -> NoReturn:
    """Turns a forked process into a command of a unit."""
    try:
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for end in (1, 2):
            os.dup2(output, end)
        account = pwd.getpwnam(unit.user)
        environment = {"PATH": _PATH, "LANG": "C.UTF-8", "INVOCATION_ID": invocation}
        if unit.user != "root":
            environment.update(HOME=account.pw_dir, USER=unit.user, LOGNAME=unit.user, SHELL=account.pw_shell)
        for path in unit.environment_files:
            environment.update(read_environment(Path(path).read_text(encoding="utf-8")))
        if unit.open_files is not None:
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            # Raising the hard limit is not for containers.
            wanted = unit.open_files if most == resource.RLIM_INFINITY else min(unit.open_files, most)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        if not command.privileged:
            restrict(unit, account)
        os.chdir(account.pw_dir if unit.at_home else "/")
        os.execve(command.argv[0], list(command.argv), environment)  # noqa: S606  # no shell is wanted
    except (OSError, KeyError, ValueError) as error:
        os.write(2, f"{command.argv[0]} can't be started: {error}\n".encode())
    finally:
        os._exit(203)


def restrict(unit: Unit, account: pwd.struct_passwd) -> None:
    """Takes from this process what a unit's processes are not to have."""
    if unit.capabilities is not None:
        number = 0
        while prctl(_CAPBSET_READ, number) >= 0:
            if number not in unit.capabilities:
                prctl(_CAPBSET_DROP, number)
            number += 1
    if account.pw_uid != 0:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    if unit.no_new_privileges:
        prctl(_SET_NO_NEW_PRIVS, 1)


def descendants(ancestor: int) -> set[int]:
    """The processes below one, dead ones excepted."""
    parents: dict[int, int] = {}
    for pid in _pids():
        with suppress(OSError):
            # The name, in parentheses, may hold anything; what follows it is plain: state, parent.
            state, parent, *_ = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            if state not in "ZX":
                parents[pid] = int(parent)
    found: set[int] = set()
    fresh = {ancestor}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def end_invocation(invocation: str) -> None:
    """Kills what is left of one start of a service."""
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        left = members(invocation)
        if not left:
            return
        for pid in left:
            kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def members(invocation: str) -> list[int]:
    """The processes of one start of a service, whosever children they are by now."""
    mark = f"INVOCATION_ID={invocation}".encode()
    return [pid for pid in _pids() if mark in environment_of(pid)] if invocation else []


def environment_of(pid: int) -> list[bytes]:
    """The variables with which a process was started; none where it has ended or can't be asked."""
    path = Path(f"/proc/{pid}/environ")
    try:
        owner = path.stat()
        try:
            return path.read_bytes().split(b"\0")
        except PermissionError:
            # Without CAP_SYS_PTRACE, which containers lack, root may not ask other accounts' processes; these may.
            with _as_account(owner.st_uid, owner.st_gid):
                return path.read_bytes().split(b"\0")
    except OSError:
        return []


@contextmanager
def _as_account(user: int, group: int) -> Generator[None, None, None]:
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def kill(pid: int, number: int) -> None:
    """Sends a signal to a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _pids() -> list[int]:
    names = [path.name for path in Path("/proc").iterdir()]
    return [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]


def _wake(*_: object) -> None:
    """Does nothing: the signal itself has ended the wait."""


def _interrupt(*_: object) -> None:
    raise InterruptedError


def start(service: str) -> int:
    """Starts a service unless it runs; 0 once it does."""
    if Record(service).claimed:
        return 0
    unit = read_unit((UNITS / service).read_text(encoding="utf-8"))
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os.setsid()
        if os.fork() == 0:
            detach(keep=writing)
            record, log = Record(service), Log(LOGS / f"{service}.log")
            # Longer than another may take to ask whether there is a supervisor.
            if record.claim(5):
                Supervisor(unit, record, log).run(writing)
        os._exit(0)
    os.close(writing)
    os.wait()
    with os.fdopen(reading, "rb") as told:
        return 0 if told.read() == b"started" else 1


def detach(keep: int) -> None:
    """Lets go of all that came with the login: folder, terminal, streams, files, environment."""
    os.chdir("/")
    os.umask(0o022)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for end in (0, 1, 2):
        os.dup2(nowhere, end)
    for end in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if end > 2 and end != keep:
            with suppress(OSError):
                os.close(end)


def stop(service: str) -> int:
    """Ends a service, all its processes and its supervisor; 0 also if it does not run."""
    record = Record(service)
    if record.claimed:
        pid = record.read()[0]
        kill(pid, signal.SIGTERM)
        limit = int(read_unit((UNITS / service).read_text(encoding="utf-8")).stop_seconds) + _KILL_SECONDS + 5
        if not record.claim(limit):
            kill(pid, signal.SIGKILL)
    end_invocation(record.read()[2])
    return 0


def show(service: str) -> int:
    """Prints the main process and the invocation of a service, named as by `systemctl show`."""
    record = Record(service)
    _, main, invocation = record.read() if record.claimed else (0, 0, "")
    print(f"MainPID={main}\nInvocationID={invocation}")
    return 0


def active(service: str) -> int:
    """0 if the service runs."""
    record = Record(service)
    return 0 if record.claimed and record.read()[1] else NOT_SO


def alive(service: str) -> int:
    """0 if the service is looked after, though it may be about to be started again."""
    return 0 if Record(service).claimed else NOT_SO


def present(service: str) -> int:
    """0 if there is any process of the service, looked after or not."""
    record = Record(service)
    return 0 if record.claimed or members(record.read()[2]) else NOT_SO


def main() -> int:
    """Runs one command; its exit code."""
    actions = {action.__name__: action for action in (start, stop, active, alive, present, show)}
    if len(sys.argv) != 3 or sys.argv[1] not in actions:
        print(f"usage: supervise.py {'|'.join(actions)} SERVICE", file=sys.stderr)
        return 2
    return actions[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
