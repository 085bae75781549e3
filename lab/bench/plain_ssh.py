"""The same scripts with the same input, started by plain ssh in the best possible order: the bar for `pulumi up`.

The commands and their order are taken from the state of an update that has passed, so that they can't differ.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from lab.stack import Stack


@dataclass(frozen=True)
class Recorded:
    """One command of an update."""

    urn: str
    host: str
    up: str
    down: str | None
    """None where there is nothing to undo."""
    stdin: str
    waits_for: tuple[str, ...]
    """URNs of the commands before it."""


def recorded(stack: Stack) -> list[Recorded]:
    """The commands of the last update, each after those it waits for."""
    state = json.loads(stack.pulumi("stack", "export", "--show-secrets"))["deployment"]["resources"]
    commands = [_command(each) for each in state if each["type"] == "command:remote:Command"]
    # That no host is changed before all are checked is not in the state.
    checks = [command for command in commands if command.urn.endswith("-check")]
    others = [command for command in commands if command not in checks]
    return [
        *checks,
        *(_after_all(checks, command) if command.urn.endswith("-prepare") else command for command in others),
    ]


def _after_all(checks: Sequence[Recorded], command: Recorded) -> Recorded:
    return replace(command, waits_for=(*command.waits_for, *(check.urn for check in checks)))


def _command(resource: dict[str, Any]) -> Recorded:
    inputs = resource["inputs"]
    return Recorded(
        urn=resource["urn"],
        host=resource["urn"].rpartition("::")[2].rpartition("-")[0],
        up=_plain(inputs["create"]),
        down=_plain(inputs["delete"]) if "delete" in inputs else None,
        stdin=_plain(inputs["stdin"]),
        waits_for=tuple(urn for urn in resource.get("dependencies", []) if "command:remote:Command" in urn),
    )


def _plain(value: str | dict[str, str]) -> str:
    """An input as it was given: a secret one is an object with the JSON of it."""
    return json.loads(value["plaintext"]) if isinstance(value, dict) else value


def run_up(stack: Stack, commands: Sequence[Recorded]) -> None:
    """Runs every command as soon as those it waits for are done.

    Raises:
        RuntimeError: one failed.
    """
    running: dict[str, Future[None]] = {}
    with ThreadPoolExecutor(len(commands)) as pool:
        for command in commands:
            before = [running[urn] for urn in command.waits_for]
            running[command.urn] = pool.submit(_after, before, stack, command)
        for future in running.values():
            future.result()


def run_down(stack: Stack, commands: Sequence[Recorded]) -> None:
    """Undoes every command, the last one first.

    Raises:
        RuntimeError: one failed.
    """
    for command in reversed(commands):
        if command.down is not None:
            _ssh(stack, command, command.down)


def _after(before: Sequence[Future[None]], stack: Stack, command: Recorded) -> None:
    for future in before:
        future.result()
    _ssh(stack, command, command.up)


def _ssh(stack: Stack, command: Recorded, line: str) -> None:
    done: subprocess.CompletedProcess[str] = stack.lab.run("ssh", command.host, line, stdin=command.stdin)
    if done.returncode != 0:
        raise RuntimeError(f"{command.urn} by plain ssh:\n{done.stdout}{done.stderr}")
