"""Labs and stacks to measure on."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab import session
from lab.stack import Edit, Stack, copy_program


@contextmanager
def stack_with(edges: int) -> Generator[Stack, None, None]:
    """A lab of a bootstrap, a cloud node and that many edges, with a stack that has settings and nothing else yet."""
    with (
        TemporaryDirectory(prefix="rlinf-bench-") as folder,
        session.running(session.name_for_tests("-bench"), edges=edges) as lab,
    ):
        stack = Stack(copy_program(Path(folder)), lab)
        stack.create(secret=secrets.token_urlsafe(32))
        yield stack


def with_edges(count: int) -> Edit:
    """The edit of the settings that leaves the first edges only."""

    def edit(cluster: dict[str, Any]) -> None:
        del cluster["edges"][count:]

    return edit


def timed(action: Callable[[], object]) -> float:
    """Seconds that an action takes."""
    started = time.monotonic()
    action()
    return time.monotonic() - started


def machine() -> str:
    """The machine's size, in words."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{os.cpu_count()} cores and {pages / 2**30:.0f} GB that all hosts of the lab share"
