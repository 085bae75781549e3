"""A measured figure, its target, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    value: float
    """What was measured, in the unit of the target."""
    target: float
    """The bound."""
    unit: str
    """`×` for a ratio."""
    detail: str
    """The times that the value comes from."""
    at_least: bool = False
    """Whether the target is a lower bound."""

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.target if self.at_least else self.value <= self.target


def table(figures: Sequence[Figure], machine: str) -> str:
    """The figures as a Markdown table.

    Args:
        figures: in the order of the table.
        machine: what it was measured on.
    """
    lines = [f"Measured on {machine}.", "", "| figure | measured | target | | from |", "|---|---|---|---|---|"]
    for each in figures:
        sign = "≥" if each.at_least else "≤"
        lines.append(
            f"| {each.what} | {_number(each.value)} {each.unit} | {sign} {_number(each.target)} {each.unit}"
            f" | {'met' if each.met else '**missed**'} | {each.detail} |"
        )
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 100 else f"{value:.0f}"
