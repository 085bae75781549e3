"""Choices, drawn from hypothesis as one string of bytes.

Settings take some hundred choices each. Drawn one by one by hypothesis they take 11 ms; out of one string of bytes,
0.3 ms. Hypothesis still shrinks them: the first of several things to choose is the plainest, and is what the byte 0
chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

_MOST = 240


class Choices:
    """Chooses; once the bytes are used up, the plainest."""

    def __init__(self, drawn: bytes) -> None:
        self._left = iter(drawn)

    def of(self, options: Sequence[T]) -> T:
        """One of these, of 256 at most; the first is the plainest."""
        return options[next(self._left, 0) % len(options)]

    def between(self, first: int, last: int) -> int:
        """A number; the first is the plainest."""
        return self.of(range(first, last + 1))

    def flip(self) -> bool:
        """True or false; false is the plainest."""
        return self.of((False, True))

    def one_in(self, count: int) -> bool:
        """True once in so many times."""
        return self.between(0, count - 1) == count - 1

    def shuffled(self, things: Iterable[T]) -> list[T]:
        """All of these in some order."""
        left = list(things)
        return [left.pop(self.between(0, len(left) - 1)) for _ in range(len(left))]

    def some(self, things: Iterable[T], most: int) -> list[T]:
        """So many of these at most, in some order."""
        things = list(things)
        return self.shuffled(things)[: self.between(0, min(most, len(things)))]


def chosen(make: Callable[[Choices], T]) -> st.SearchStrategy[T]:
    """What a function makes by choosing."""
    return st.binary(min_size=_MOST, max_size=_MOST).map(lambda drawn: make(Choices(drawn)))
