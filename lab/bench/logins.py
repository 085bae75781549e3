"""Many edges behind one bastion, whose sshd refuses connections at random when there are too many at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from lab.bench.figure import Figure
from lab.bench.worlds import stack_with, timed
from lab.progress import step

_LOGINS, _EDGES = 32, 4


def through_one_bastion() -> Iterator[Figure]:
    """One `up` of 32 commands at once through a bootstrap with a stock sshd (MaxStartups 10:30:100)."""
    with stack_with(edges=_EDGES) as stack:
        shutil.copy2(Path(__file__).with_name("logins_program.py"), stack.project / "__main__.py")
        with step(f"{_LOGINS} commands at once through one bastion"):
            # It fails where a single host is not reached.
            seconds = timed(lambda: stack.up("--parallel", str(_LOGINS)))
        reached = len(stack.outputs()["hosts"])
        yield Figure(
            f"{_LOGINS} logins at once through one bastion: not reached",
            _LOGINS - reached, 0, "", f"{seconds:.1f} s for all, on {_EDGES} edges",
        )  # fmt: skip
