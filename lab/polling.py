"""Waiting for something to become true, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_PAUSE_S = 0.05


def wait_for(probe: Callable[[], T | None], limit: float) -> T | None:
    """Asks again and again until there is an answer.

    Args:
        probe: gives the answer, or None while there is none yet.
        limit: seconds after which the wait is over.

    Returns:
        The answer, or None where there was none in time.
    """
    end = time.monotonic() + limit
    while (answer := probe()) is None:
        if time.monotonic() >= end:
            return None
        time.sleep(_PAUSE_S)
    return answer
