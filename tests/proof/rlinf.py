"""RLinf's own parsers, asked from here: one process in the environment that RLinf is installed in.

What is asked and answered is described where it happens, in `rlinf_programs/oracle.py`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("rlinf_programs")


@dataclass(frozen=True)
class Machine:
    """One node as Ray would find it. The driver runs on the first."""

    ip: str
    rank: int
    """Its RLINF_NODE_RANK."""
    accelerators: int = 0
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables in the environment of its `ray start`."""


@dataclass(frozen=True)
class Accepted:
    """RLinf takes the config."""

    placements: dict[str, list[dict[str, Any]]]
    """Component to its processes: `process`, `node`, `group` and `resources` of that node."""
    groups: dict[str, dict[str, Any]]
    """Label to `nodes`, `hardware`, `count`, and per node `env` and `python`."""
    robots: dict[str, list[dict[str, Any]]]
    """Node rank to the robots RLinf finds there, as it understood them."""


@dataclass(frozen=True)
class Refused:
    """RLinf does not take the config."""

    error: str
    """Its own words."""
    stage: str = ""
    """Where: `yaml`, `cluster` or `placement`."""


Answer = Accepted | Refused

Config = str | Mapping[str, Any]
"""The text of a config in YAML, or what is in it."""


class Oracle:
    """RLinf in a process of its own, for as many questions as there are."""

    def __init__(self, python: Path) -> None:
        """Starts it.

        Args:
            python: the interpreter of the environment that RLinf is installed in.
        """
        self._process = subprocess.Popen(
            [python, PROGRAMS / "oracle.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, config: Config, machines: Iterable[Machine]) -> Answer:
        """What RLinf makes of a config on these machines.

        Raises:
            RuntimeError: the process has ended; it has said why on standard error.
        """
        self.begin(config, machines)
        return self.end()

    def begin(self, config: Config, machines: Iterable[Machine]) -> None:
        """Asks, and does not wait for the answer; each question is ended before the next one begins."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(question(config, machines))
            self._process.stdin.flush()

    def end(self) -> Answer:
        """The answer to the question that has begun.

        Raises:
            RuntimeError: the process has ended; it has said why on standard error.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"RLinf's process has ended with {self._process.wait()}")
        return answer(line)

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate(timeout=60)


def ask_real_cluster(python: Path, configs: Sequence[str], machines: Sequence[Machine]) -> list[Answer]:
    """What RLinf makes of configs on a real Ray, started for this on loopback addresses: about 15 s, and 2 s a config.

    Raises:
        subprocess.CalledProcessError: Ray did not start; it has said why on standard error.
    """
    done = subprocess.run(
        [python, PROGRAMS / "real_cluster.py"],
        input="".join(question(config, machines) for config in configs),
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=60 + 30 * len(configs),
    )
    return [answer(line) for line in done.stdout.splitlines()]


def question(config: Config, machines: Iterable[Machine]) -> str:
    """A question as the programs take it, with its line end."""
    nodes = [
        {"ip": each.ip, "rank": each.rank, "accelerators": each.accelerators, "env": dict(each.env)}
        for each in machines
    ]
    return json.dumps({"config": config, "nodes": nodes}) + "\n"


def answer(line: str) -> Answer:
    """An answer as the programs give it."""
    fields = json.loads(line)
    return Accepted(**fields) if fields.pop("accepted") else Refused(**fields)
