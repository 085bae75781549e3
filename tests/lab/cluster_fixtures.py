"""A cluster on a lab of its own: brought up once for the tests of a module, destroyed by the last of them."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab import session
from lab.stack import Stack, copy_program
from lab.topology import Kind


@contextmanager
def lab_with_stack(
    folder: Path,
    suffix: str,
    *,
    edges: int,
    clouds: int = 1,
    kinds: Mapping[str, Kind] | None = None,
    secret: str | None = None,
) -> Generator[Stack, None, None]:
    """A lab with a stack that has settings and nothing else yet.

    Args:
        folder: an empty one, for the project.
        suffix: tells labs of one test run apart.
        edges: number of edges.
        clouds: number of cloud nodes.
        kinds: name of an edge → how it runs, where that is not by systemd.
        secret: the network secret; by default a random one.
    """
    with session.running(session.name_for_tests(suffix), edges=edges, clouds=clouds, kinds=kinds) as lab:
        stack = Stack(copy_program(folder), lab)
        stack.create(secret=secret or f"canary-{secrets.token_hex(16)}")
        yield stack


def ok(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output of a command that must have succeeded."""
    assert done.returncode == 0, f"{done.args} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


def service_pids(stack: Stack, host: str) -> dict[str, str]:
    """Main process id of each of our services on a host; 0 where one does not run."""
    names = ("rlinf-easytier.service", "rlinf-ray.service")
    if stack.lab.lab.host(host).kind == "systemd":
        told = ok(stack.lab.exec(host, "systemctl", "show", "--property=MainPID", "--value", *names)).split()
        return dict(zip(names, told, strict=True))
    return {name: _supervised_pid(stack, host, name) for name in names}


def _supervised_pid(stack: Stack, host: str, service: str) -> str:
    told = ok(stack.lab.exec(host, "python3", "-B", "/opt/rlinf-cloud-edge/libexec/supervise.py", "show", service))
    return told.splitlines()[0].partition("=")[2]


# Files that a booted Debian writes by itself, and that no removal is to touch.
_CHANGING = (
    "/var/log/",
    "/var/lib/systemd/",
    "/var/lib/private",
    "/var/cache/private",
    "/run/systemd",
    "/tmp/systemd-",
)


def files_on(stack: Stack, host: str) -> set[str]:
    """Every file and folder of a host's own, but for what it writes by itself."""
    listed = ok(
        stack.lab.exec(
            host, "find", "/", "/run", "/tmp", "/dev/shm", "-xdev", "-path", "/proc", "-prune", "-o", "-print"
        )
    )
    return {line for line in listed.splitlines() if not line.startswith(_CHANGING)}


def accounts_on(stack: Stack, host: str) -> str:
    """The accounts and groups of a host."""
    return ok(stack.lab.exec(host, "cat", "/etc/passwd", "/etc/group"))


def failed(stack: Stack, *argv: str) -> str:
    """What a `pulumi` command prints that must fail."""
    done = stack.run(*argv)
    assert done.returncode != 0, f"pulumi {argv[0]} passed:\n{done.stdout}"
    return done.stdout + done.stderr


def told_by_checks(told: str, host: str) -> str:
    """What Pulumi's summary says about the checks of a host."""
    parts = told.partition("Diagnostics:")[2].split("command:remote:Command (")
    return next(part for part in parts if part.startswith(f"{host}-check)"))


def ray_python(stack: Stack, host: str, code: str) -> str:
    """What a Python program prints that runs on a host in the environment of Ray."""
    return ok(stack.lab.exec(host, "/opt/rlinf-cloud-edge/libexec/launch.sh", "python", "-c", code))


def raylet_environment(stack: Stack, host: str) -> dict[str, str]:
    """The variables that a host's raylet was started with."""
    pid = ok(stack.lab.exec(host, "pgrep", "-x", "raylet")).split()[0]
    entries = ok(stack.lab.exec(host, "cat", f"/proc/{pid}/environ")).split("\0")
    return {name: value for name, _, value in (entry.partition("=") for entry in entries)}


def assert_as_before(stack: Stack, host: str, before: tuple[set[str], str]) -> None:
    """Fails unless a host has the files and accounts it had, and no device, rule or process of ours."""
    files, accounts = before
    assert files_on(stack, host) - files == set()
    assert files - files_on(stack, host) == set()
    assert accounts_on(stack, host) == accounts
    assert "et0" not in ok(stack.lab.exec(host, "ip", "-brief", "link"))
    assert ok(stack.lab.exec(host, "nft", "list", "ruleset")) == ""
    assert "rlinf" not in ok(stack.lab.exec(host, "ps", "axww", "-o", "args"))
