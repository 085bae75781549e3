"""A cluster on a lab of its own: brought up once for the tests of a module, destroyed by the last of them."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lab import session
from lab.stack import Stack, copy_program


@contextmanager
def lab_with_stack(folder: Path, suffix: str, *, edges: int, clouds: int = 1) -> Generator[Stack, None, None]:
    """A lab with a stack that has settings and nothing else yet.

    Args:
        folder: an empty one, for the project.
        suffix: tells labs of one test run apart.
        edges: number of edges.
        clouds: number of cloud nodes.
    """
    with session.running(session.name_for_tests(suffix), edges=edges, clouds=clouds) as lab:
        stack = Stack(copy_program(folder), lab)
        stack.create(secret=f"canary-{secrets.token_hex(16)}")
        yield stack


def ok(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output of a command that must have succeeded."""
    assert done.returncode == 0, f"{done.args} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


def service_pids(stack: Stack, host: str) -> dict[str, str]:
    """Main process id of each of our services on a host; 0 where one does not run."""
    names = ("rlinf-easytier.service", "rlinf-ray.service")
    told = ok(stack.lab.exec(host, "systemctl", "show", "--property=MainPID", "--value", *names)).split()
    return dict(zip(names, told, strict=True))


def ray_python(stack: Stack, host: str, code: str) -> str:
    """What a Python program prints that runs on a host in the environment of Ray."""
    return ok(stack.lab.exec(host, "/opt/rlinf-cloud-edge/libexec/launch.sh", "python", "-c", code))
