"""What should be: the stack's outputs, read as one expectation a host. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NEEDED = ("nodes", "ssh_config", "versions")


class NoPlanError(Exception):
    """The outputs say nothing that hosts could be compared with; the message says why, and what to do."""


@dataclass(frozen=True)
class Expected:
    """What a host should be."""

    name: str
    role: str
    """bootstrap, head or worker."""
    state: str
    """enabled, disabled or lost."""
    rank: int | None
    """RLinf node rank; None where no Ray is to run."""
    ip: str
    """Address on which the others reach it."""
    device: str
    """Network device with that address."""
    login: bool
    """Whether we can log in to it."""


@dataclass(frozen=True)
class Plan:
    """What all hosts should be."""

    hosts: tuple[Expected, ...]
    ssh_config: str
    """How ssh reaches them, by name."""
    easytier: str | None
    """Version; None in direct mode."""
    ray: str
    """Version."""
    python: str | None
    """Version, or the first parts of one; None where the nodes bring their own."""

    @property
    def head(self) -> Expected:
        """The Ray head."""
        return next(host for host in self.hosts if host.role == "head")


def read_outputs(outputs: Mapping[str, Any]) -> Plan:
    """The plan that a stack's outputs tell.

    Raises:
        NoPlanError: they lack what is needed.
    """
    missing = [name for name in _NEEDED if name not in outputs]
    if missing:
        raise NoPlanError(
            f"the stack has no output {' and '.join(missing)}: it is empty, its first `pulumi up` has not passed, "
            "or an older version of this program made it. Run `pulumi up`"
        )
    config: str = outputs["ssh_config"]
    reached = set(re.findall(r"^Host (\S+)$", config, re.MULTILINE))
    hosts = tuple(
        Expected(
            name=row["name"],
            role=row["role"],
            state=row["state"],
            rank=row["rank"],
            ip=row["overlay_ip"],
            device=row["device"],
            login=row["name"] in reached and row["state"] not in {"lost", "pending"},
        )
        for row in outputs["nodes"]
    )
    versions = outputs["versions"]
    return Plan(hosts, config, versions["easytier"], versions["ray"], versions["python"])
