"""Findings as a table for people, and as JSON for programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from doctor.compare import Finding
from doctor.plan import Plan

_COLUMNS = ("host", "rank", "address", "to the head", "EasyTier", "Ray", "Python", "")
_REPAIR = (
    "Put it right with a new value of cluster.repair and `pulumi up`: what is healthy is not restarted. "
    "For a host that is gone for good, set lost: true."
)


def verdict(finding: Finding) -> str:
    """One word or two on a host."""
    count = len(finding.differences)
    if count:
        return "1 difference" if count == 1 else f"{count} differences"
    return "as planned" if finding.answer.status else finding.answer.why


def render(plan: Plan, findings: Sequence[Finding]) -> str:
    """A table of all hosts, then what differs, then what to do about it."""
    rows = [_COLUMNS, *(_row(plan, finding) for finding in findings)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    found = [f"{finding.expected.name}: {text}" for finding in findings for text in finding.differences]
    if found:
        lines += ["", *found, "", _REPAIR]
    return "\n".join(lines) + "\n"


def to_json(plan: Plan, findings: Sequence[Finding]) -> str:
    """The same as a JSON object."""
    hosts = [
        {
            "name": finding.expected.name,
            "state": finding.expected.state,
            "reached": finding.answer.status is not None,
            **dict(
                zip(
                    ("rank", "address", "path_to_head", "easytier", "ray", "python"), _found(plan, finding), strict=True
                )
            ),
            "differences": finding.differences,
        }
        for finding in findings
    ]
    as_planned = not any(finding.differences for finding in findings)
    return json.dumps({"as_planned": as_planned, "hosts": hosts}, indent=2) + "\n"


def _row(plan: Plan, finding: Finding) -> tuple[str, ...]:
    cells = ("-" if cell is None else cell for cell in _found(plan, finding))
    return (finding.expected.name, *cells, verdict(finding))


def _found(plan: Plan, finding: Finding) -> tuple[str | None, ...]:
    """Rank, address, way to the head, and versions, as they were found; None where there was nothing."""
    status, expected = finding.answer.status, finding.expected
    if status is None:
        return (None,) * 6
    address = f"{expected.ip} {expected.device}" if (expected.device, expected.ip) in status.addresses else None
    path = (status.paths or {}).get(plan.head.ip)
    return (
        status.rank,
        address,
        None if path is None else str(path),
        _running(status.easytier, status.easytier_version),
        _running(status.ray if status.ray_runs or status.ray != "active" else "waiting", status.ray_version),
        status.python_version,
    )


def _running(state: str | None, version: str | None) -> str | None:
    return version if state == "active" and version else state
