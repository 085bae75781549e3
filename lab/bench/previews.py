"""How the program itself scales: settings of hundreds of edges, without an engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from lab.bench.figure import Figure
from lab.paths import CLONE
from lab.progress import step

_HALF, _WHOLE = 500, 1000


def many_edges() -> Iterator[Figure]:
    """The program under Pulumi's mocks with 500 and with 1,000 edges."""
    with step(f"The program with {_HALF} and with {_WHOLE} edges, under mocks"):
        half, whole = _seconds(_HALF), _seconds(_WHOLE)
    yield Figure(
        f"`preview` of {_WHOLE:,} edges under mocks, an edge",
        1000 * whole / _WHOLE, 15, "ms", f"{whole:.1f} s",
    )  # fmt: skip
    yield Figure(
        f"{_WHOLE:,} edges against {_HALF}: linear",
        whole / half, 2.2, "×", f"{whole:.1f} s : {half:.1f} s",
    )  # fmt: skip


def _seconds(edges: int) -> float:
    """Seconds that the program takes in a process of its own, interpreter and imports left out."""
    done = subprocess.run(
        [sys.executable, "-m", "lab.bench.mocked_program", str(edges)],
        cwd=CLONE, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return float(done.stdout)
