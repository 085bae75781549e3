"""What a unit file and its environment files say, as far as `supervise.py` needs it. Pure, and for Python 3.8 and up.

A host without systemd runs the very units that one with systemd runs. Of each setting, `supervise.py` does what
systemd.exec(5) and systemd.service(5) say, or has no need to; a setting that is neither here is refused.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

# Of no consequence here: what supervise.py does anyway, and what is about other units or systemd's own accounting.
_NO_NEED = {
    *("Description", "Documentation", "After", "Wants", "WantedBy"),
    *("StartLimitIntervalSec", "Type", "Restart", "TimeoutStartSec", "TasksMax"),
}
_CAPABILITIES = {"CAP_NET_BIND_SERVICE": 10, "CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13}  # linux/capability.h


@dataclass(frozen=True)
class Command:
    """A command of a unit.

    Attributes:
        argv: program and arguments.
        privileged: whether it runs as root and unrestricted (`+`), whatever the unit's user.
    """

    argv: tuple[str, ...]
    privileged: bool


@dataclass(frozen=True)
class Unit:
    """A service.

    Attributes:
        start_pre: what runs before it, in this order; it does not start if one fails.
        start: its main process.
        user: the account it runs as.
        at_home: whether it starts in that account's home, else in `/`.
        environment_files: files of variables.
        restart_seconds: pause before it is started again.
        stop_seconds: time to end after SIGTERM, before SIGKILL.
        main_first: whether only the main process gets SIGTERM, and all others SIGKILL once it has ended.
        open_files: how many files each process may have open; None leaves the limit.
        capabilities: the only ones its processes can have; None leaves them.
        no_new_privileges: whether set-user-ID programs are of no effect.
    """

    start_pre: tuple[Command, ...]
    start: Command
    user: str
    at_home: bool
    environment_files: tuple[str, ...]
    restart_seconds: float
    stop_seconds: float
    main_first: bool
    open_files: int | None
    capabilities: frozenset[int] | None
    no_new_privileges: bool


def read_unit(text: str) -> Unit:
    """The service of a unit file.

    Raises:
        ValueError: it has a setting, or a value, that is not known here.
    """
    values: dict[str, list[str]] = {}
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#;[":
            continue
        name, _, value = line.partition("=")
        values.setdefault(name, []).append(value)

    def last(name: str, default: str) -> str:
        return values.pop(name, [default])[-1]

    if "ExecStart" not in values:
        raise ValueError("the unit has no ExecStart")
    capabilities = values.pop("CapabilityBoundingSet", None)
    open_files = last("LimitNOFILE", "")
    unit = Unit(
        start_pre=tuple(_command(value) for value in values.pop("ExecStartPre", [])),
        start=_command(last("ExecStart", "")),
        user=last("User", "root"),
        at_home=last("WorkingDirectory", "") == "~",
        environment_files=tuple(values.pop("EnvironmentFile", [])),
        restart_seconds=float(last("RestartSec", "0.1")),
        stop_seconds=float(last("TimeoutStopSec", "90")),
        main_first=_main_first(last("KillMode", "control-group")),
        open_files=int(open_files) if open_files else None,
        capabilities=None if capabilities is None else frozenset(map(_capability, " ".join(capabilities).split())),
        no_new_privileges=last("NoNewPrivileges", "no") == "yes",
    )
    unknown = sorted(values.keys() - _NO_NEED)
    if unknown:
        raise ValueError(f"the unit has settings that are not known here: {', '.join(unknown)}")
    return unit


def _command(text: str) -> Command:
    argv = shlex.split(text)
    if not argv or argv[0].lstrip("+")[:1] != "/":
        raise ValueError(f"{text} is not a command known here: give an absolute path, with or without + before it")
    return Command((argv[0].lstrip("+"), *argv[1:]), argv[0].startswith("+"))


def _main_first(kill_mode: str) -> bool:
    if kill_mode not in ("control-group", "mixed"):
        raise ValueError(f"KillMode={kill_mode} is not known here")
    return kill_mode == "mixed"


def _capability(name: str) -> int:
    if name not in _CAPABILITIES:
        raise ValueError(f"the capability {name} is not known here")
    return _CAPABILITIES[name]


_ASSIGNMENT = re.compile(
    r"""^[ \t]*([A-Za-z_][A-Za-z0-9_]*)=((?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\n"'\\])*)$""", re.MULTILINE | re.DOTALL
)
_PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|([^"'\\]+)""", re.DOTALL)


def read_environment(text: str) -> dict[str, str]:
    """The variables of an environment file, by the rules of EnvironmentFile= in systemd.exec(5)."""
    return {name: _unquoted(value) for name, value in _ASSIGNMENT.findall(text)}


def _unquoted(value: str) -> str:
    parts: list[str] = []
    for match in _PART.finditer(value.strip(" \t")):
        double, single, escaped, plain = match.groups()
        if double is not None:
            parts.append(re.sub(r'\\(["\\$`\n])', lambda found: found[1].strip("\n"), double))
        elif escaped is not None:
            parts.append(escaped.strip("\n"))
        else:
            parts.append(plain if single is None else single)
    return "".join(parts)
