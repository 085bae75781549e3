"""Hosts: Debian systems under systemd-nspawn, switched on, looked into, and switched off.

What a host is plugged into is `network.py`'s, what it has on its disk `disk.py`'s.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import cgroups, network, topology
from lab.errors import LabError
from lab.polling import wait_for
from lab.processes import Process
from lab.state import LabFiles
from lab.topology import LabHost

BOOT_LIMIT_S = 90
"""Seconds a host may take from being switched on to answering; a busy machine boots many at once."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_RUN = Path(__file__).with_name("host_run.sh")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_GROUPS = ("runner", "machine", "exec")


def group(lab: str, host: str) -> str:
    """The control group of a host."""
    return f"{lab}/hosts/{host}"


def switch_on(files: LabFiles, lab: str, host: LabHost, image: Path, shared: Path) -> Process:
    """Boots a host, without waiting for it.

    Args:
        files: of the lab.
        lab: its name.
        host: whose disk has been made.
        image: base root filesystem, below the disk.
        shared: folder of this machine that the host sees, read-only, as /opt/rlinf.

    Returns:
        The process that keeps it running.
    """
    for part in _GROUPS:
        cgroups.create(f"{group(lab, host.name)}/{part}")
    network.remove_port(lab, host.name)
    namespace = network.path(topology.world_namespace(lab))
    folders = cgroups.folders(group(lab, host.name))
    with files.console(host.name).open("ab") as console:
        # A session of its own: it does not end with the terminal it was started from.
        started = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", str(_RUN),
             topology.machine_name(lab, host.name), host.name, host.kind, str(image), str(namespace), host.bridge,
             str(shared),
             *map(str, folders)],
            cwd=files.host(host.name), env={"PATH": PATH, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
        )  # fmt: skip
    process = Process.of(started.pid)
    if process is None:
        raise LabError(f"{host.name} can't be switched on: {console_tail(files, host.name)}")
    return process


def cut_power(lab: str, host: str) -> None:
    """Ends a host at once, as if its plug had been pulled; its disk stays."""
    cgroups.destroy(group(lab, host))
    network.remove_port(lab, host)


def leader(lab: str, host: str) -> int | None:
    """The pid, on this machine, of a host's process 1; None while there is none."""
    for pid in cgroups.pids(f"{group(lab, host)}/machine"):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        numbers = re.search(r"^NSpid:\s+(.*)$", status, re.MULTILINE)
        if numbers is not None and numbers[1].split()[1:] == ["1"]:
            return pid
    return None


def running_leader(lab: str, host: str) -> int:
    """The pid, on this machine, of a host's process 1.

    Raises:
        LabError: the host is not running.
    """
    pid = leader(lab, host)
    if pid is None:
        raise LabError(f"{host} is not running; `script/lab fault start-host {host}` switches it on")
    return pid


def command_in(pid: int, argv: Sequence[str], user: str = "root") -> list[str]:
    """The command of this machine that runs another inside a host, as root or as one of the host's users.

    Args:
        pid: of the host's process 1.
        argv: the command and its arguments, as the host knows them.
        user: the account to run it under.

    Raises:
        LabError: the host has no such user.
    """
    home = _home(pid, user)
    become = [] if user == "root" else ["runuser", "-u", user, "--"]
    return [
        "nsenter", f"--target={pid}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--",
        "/usr/bin/env", "-i", f"--chdir={home}", f"PATH={PATH}", f"HOME={home}", f"USER={user}", f"LOGNAME={user}",
        "SHELL=/bin/bash", "LANG=C.UTF-8", *become, *argv,
    ]  # fmt: skip


def run(lab: str, host: str, *argv: str, stdin: str = "", limit: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a command on a host as root, and waits for it.

    Args:
        lab: name of the lab.
        host: name of the host.
        argv: the command.
        stdin: what it reads.
        limit: seconds it may take.

    Raises:
        LabError: the host is not running, or the command took too long.
    """
    command = command_in(running_leader(lab, host), argv)
    try:
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{' '.join(argv)}` on {host} took more than {limit:.0f} s") from error


def must(lab: str, host: str, *argv: str, stdin: str = "", limit: float = 60) -> str:
    """Runs a command on a host as root, and returns what it printed.

    Raises:
        LabError: it failed, or could not be run.
    """
    done = run(lab, host, *argv, stdin=stdin, limit=limit)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(argv)}` failed on {host}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def ask_to_reboot(files: LabFiles, lab: str, host: LabHost) -> None:
    """Has a host start anew: its systemd reboots; a container ends at once, and its runner starts it again."""
    if host.kind == "systemd":
        # The answer may not arrive: the host is going down.
        run(lab, host.name, "systemctl", "--no-block", "reboot")
        return
    (files.host(host.name) / "restart").touch()
    os.kill(running_leader(lab, host.name), signal.SIGKILL)


def wait_until_up(files: LabFiles, lab: str, host: LabHost, runner: Process) -> None:
    """Waits until a host has started everything, which in a container is its sshd; a container then gets its address.

    Raises:
        LabError: it has not in time, or something failed; the message ends with the host's console.
    """

    def starting() -> int | None:
        if not runner.alive:
            raise LabError(f"{host.name} ended while it booted. {console_tail(files, host.name)}")
        return leader(lab, host.name)

    pid = wait_for(starting, BOOT_LIMIT_S)
    if pid is None:
        raise LabError(f"{host.name} did not boot in {BOOT_LIMIT_S} s. {console_tail(files, host.name)}")
    if host.kind == "systemd":
        _wait_until_settled(files, lab, host.name, runner)
    else:
        _connect_container(files, pid, host)


def _connect_container(files: LabFiles, pid: int, host: LabHost) -> None:
    """Gives a container its address and route from outside, as Docker does; in it, nobody would."""
    commands = [
        "link set lo up",
        "link set host0 up",
        f"address replace {host.address}/24 dev host0",
        f"route replace default via {host.gateway}",
    ]
    said = ""

    def connected() -> bool | None:
        # systemd-nspawn makes the device once process 1 is there.
        nonlocal said
        done = subprocess.run(
            ["nsenter", f"--target={pid}", "--net", "ip", "-batch", "-"],
            input="\n".join(commands) + "\n", capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = done.stderr.strip()
        return True if done.returncode == 0 else None

    if wait_for(connected, BOOT_LIMIT_S) is None:
        raise LabError(f"{host.name} can't be given its address: {said}. {console_tail(files, host.name)}")


def _wait_until_settled(files: LabFiles, lab: str, host: str, runner: Process) -> None:
    def settled() -> str | None:
        if not runner.alive:
            raise LabError(f"{host} ended while it booted. {console_tail(files, host)}")
        # Until its bus answers, this fails; afterwards it waits for the end of the boot by itself.
        asked = run(lab, host, "systemctl", "is-system-running", "--wait", limit=BOOT_LIMIT_S)
        state = asked.stdout.strip()
        return state if state in {"running", "degraded", "maintenance"} else None

    state = wait_for(settled, BOOT_LIMIT_S)
    if state != "running":
        failed = run(lab, host, "systemctl", "--failed", "--no-legend", "--plain").stdout.strip()
        raise LabError(
            f"{host} did not come up as it should (systemd says {state or 'nothing'}"
            f"{', failed: ' + failed if failed else ''}). {console_tail(files, host)}"
        )


def console_tail(files: LabFiles, host: str, lines: int = 15) -> str:
    """The end of what a host printed on its console, for a message."""
    path = files.console(host)
    text = _ANSI.sub("", path.read_text(errors="replace")) if path.exists() else ""
    tail = [line for line in text.splitlines() if line.strip()][-lines:]
    if not tail:
        return f"Its console ({path}) is empty."
    return f"The end of its console ({path}):\n" + "\n".join(f"  {line}" for line in tail)


def _home(pid: int, user: str) -> str:
    for line in Path(f"/proc/{pid}/root/etc/passwd").read_text().splitlines():
        name, _, _, _, _, home, *_ = line.split(":")
        if name == user:
            return home
    raise LabError(f"the host has no user {user}")
