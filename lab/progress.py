"""Progress that a person can read, on standard error, so that standard output stays free for results.

One line when a long step begins, one when it ends. No bars and no colours: the same text serves a terminal, a
log file and CI.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def step(title: str) -> Generator[None, None, None]:
    """Says what is being done, then how long it took, or that it failed.

    Args:
        title: what is done, in a few words; give the expected time where it is more than a minute.
    """
    say(f"==> {title}")
    started = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"    failed after {duration(time.monotonic() - started)}: {title}")
        raise
    say(f"    done in {duration(time.monotonic() - started)}")


def note(text: str) -> None:
    """Says something that a person should know, such as which substitute is used and why."""
    say(f"    {text}")


def say(line: str) -> None:
    """Prints one line of progress at once."""
    print(line, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A time span for people: `0.4 s`, `12 s`, `3 min 20 s`.

    Args:
        seconds: the time span in seconds, not negative.
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s"
