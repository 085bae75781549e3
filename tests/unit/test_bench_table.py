"""The table of the benchmark."""

from __future__ import annotations

from lab.bench.figure import Figure, table


def test_a_target_is_an_upper_bound_unless_it_says_otherwise() -> None:
    assert Figure("a", 1.25, 1.25, "×", "").met
    assert not Figure("a", 1.26, 1.25, "×", "").met
    assert Figure("a", 1.3, 1.3, "×", "", at_least=True).met
    assert not Figure("a", 1.29, 1.3, "×", "", at_least=True).met


def test_the_table_says_what_was_measured_where_and_what_is_missed() -> None:
    figures = [Figure("up", 1.5, 1.25, "×", "15 s : 10 s"), Figure("path", 1400, 1.3, "×", "", at_least=True)]
    assert table(figures, "2 cores") == (
        "Measured on 2 cores.\n\n"
        "| figure | measured | target | | from |\n"
        "|---|---|---|---|---|\n"
        "| up | 1.5 × | ≤ 1.25 × | **missed** | 15 s : 10 s |\n"
        "| path | 1400 × | ≥ 1.3 × | met |  |\n"
    )
