"""A lab for the length of a block of Python: what tests and benchmarks use instead of the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from lab import hosts, operator, topology, world
from lab.paths import Cache
from lab.processes import Process
from lab.state import claimed_names
from lab.world import Lab

TEST_PREFIX = "test-"


@dataclass(frozen=True)
class Session:
    """A lab that is up.

    Attributes:
        lab: which one.
    """

    lab: Lab

    @property
    def name(self) -> str:
        """Its name, for `script/lab … --name`."""
        return self.lab.name

    @property
    def hosts(self) -> tuple[topology.LabHost, ...]:
        """Its hosts."""
        return self.lab.state().topology.hosts

    def exec(
        self, host: str, *argv: str, user: str = "root", stdin: str = "", limit: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on a host.

        Args:
            host: its name.
            argv: the command.
            user: account on the host.
            stdin: what the command reads.
            limit: seconds it may take.

        Raises:
            LabError: there is no such host or user, or the host is not running.
            subprocess.TimeoutExpired: it took too long.
        """
        command = hosts.command_in(hosts.running_leader(self.name, self.lab.host(host).name), argv, user)
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=limit, check=False)

    def run(
        self, *argv: str, stdin: str = "", limit: float = 600, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command of this machine as the lab's operator: in its network, with its environment.

        Args:
            argv: the command.
            stdin: what it reads.
            limit: seconds it may take.
            cwd: where it runs; here when left out.
            variables: what its environment has beyond the lab's.

        Raises:
            subprocess.TimeoutExpired: it took too long.
        """
        command = operator.command(self.name, argv)
        environment = {**self.env(), **variables}
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=limit, check=False, env=environment, cwd=cwd
        )

    def stream(self, *argv: str, cwd: Path | None = None, **variables: str) -> None:
        """Runs a command as `run` does, but what it prints goes where this process prints.

        Args:
            argv: the command.
            cwd: where it runs; here when left out.
            variables: what its environment has beyond the lab's.

        Raises:
            subprocess.CalledProcessError: it failed.
        """
        environment = {**self.env(), **variables}
        command = shutil.which(argv[0], path=environment["PATH"]) or argv[0]
        subprocess.run(
            operator.command(self.name, [command, *argv[1:]]),
            check=True,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=cwd,
        )

    def env(self) -> dict[str, str]:
        """The operator's environment, as `script/lab env` prints it, over that of this process."""
        return operator.environment(self.lab.files, self.lab.state())

    def inventory(self) -> dict[str, Any]:
        """The lab's settings for a Pulumi stack: `{"cluster": …}`."""
        text = StringIO(world.settings(self.lab))
        return cast("dict[str, Any]", YAML(typ="safe").load(text))  # pyright: ignore[reportUnknownMemberType]  # ruamel.yaml leaves its types open

    def console(self, host: str) -> str:
        """What a host printed on its console."""
        return self.lab.files.console(host).read_text(errors="replace")


@contextmanager
def running(
    name: str,
    *,
    edges: int = 1,
    clouds: int = 1,
    kinds: Mapping[str, topology.Kind] | None = None,
    aws: bool = False,
) -> Generator[Session, None, None]:
    """Brings a lab up, and takes it down at the end of the block, however that ends.

    Args:
        name: of the lab.
        edges: number of edges.
        clouds: number of cloud nodes.
        kinds: name of an edge → how it runs, where that is not by systemd.
        aws: whether it has an AWS world.

    Raises:
        LabError: it can't be brought up.
    """
    lab = Lab(Cache.from_environment(), name)
    world.up(lab, clouds, edges, kinds, aws=aws)
    try:
        yield Session(lab)
    finally:
        world.down(lab)


def name_for_tests(suffix: str = "") -> str:
    """A name for a lab of this test run. Another run's labs have other names."""
    return f"{TEST_PREFIX}{os.getpid()}{suffix}"


def take_down_orphans() -> None:
    """Takes down the labs of test runs that were killed before they could do it."""
    cache = Cache.from_environment()
    for name in claimed_names(cache):
        pid = name.removeprefix(TEST_PREFIX).split("-")[0]
        if name.startswith(TEST_PREFIX) and pid.isdigit() and Process.of(int(pid)) is None:
            world.down(Lab(cache, name))
