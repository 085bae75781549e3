"""A round of checks: who of it is at work, and who is to wait for the others. Pure, and without Pulumi.

Pulumi begins nothing new once a command has failed, and its errors are those of what it had begun by then. A check that
has failed therefore ends only after the others have, so that one update tells the faults of all hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

_NOBODY_BEGINS_SECONDS = 5.0
"""Where nobody is at work and nobody has begun for that long, nobody will: all that Pulumi works on at once have failed
and wait, or something else has ended the update."""


class Round:
    """The checks of some hosts, made side by side."""

    def __init__(self, checks: Iterable[str], patience: float = _NOBODY_BEGINS_SECONDS) -> None:
        """Nobody has begun.

        Args:
            checks: their names.
            patience: seconds for which one is waited for that does not begin.
        """
        self._to_come = set(checks)
        self._at_work = set[str]()
        self._failed = set[str]()
        self._news = asyncio.Event()
        self._patience = patience

    @property
    def failed(self) -> list[str]:
        """Names of those that have failed so far."""
        return sorted(self._failed)

    def begins(self, check: str) -> None:
        """A check is at work."""
        self._to_come.discard(check)
        self._at_work.add(check)
        self._tell()

    def ends(self, check: str) -> None:
        """A check has passed, or need not be made."""
        self._to_come.discard(check)
        self._at_work.discard(check)
        self._tell()

    async def fails(self, check: str) -> list[str]:
        """A check has failed: returns when it may say so, since no other is at work or will begin.

        Returns:
            Names of the checks that were not made.
        """
        self._failed.add(check)
        self.ends(check)
        while self._at_work or self._to_come:
            try:
                async with asyncio.timeout(None if self._at_work else self._patience):
                    await self._news.wait()
            except TimeoutError:
                break
        return sorted(self._to_come)

    def _tell(self) -> None:
        # Wakes those that wait now; whoever waits later waits for later news.
        self._news.set()
        self._news.clear()
