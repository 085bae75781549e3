"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator

from lab.bench.figure import Figure, table
from lab.bench.logins import through_one_bastion
from lab.bench.paths import throughput
from lab.bench.previews import many_edges
from lab.bench.updates import first_update, more_edges
from lab.bench.worlds import machine
from lab.errors import LabError
from lab.stack import StackError

FIGURES: dict[str, Callable[[], Iterator[Figure]]] = {
    "first": first_update,
    "more": more_edges,
    "preview": many_edges,
    "throughput": throughput,
    "bastion": through_one_bastion,
}


def main() -> int:
    """Measures what the command line names; 1 where a target is missed or something fails."""
    arguments = _arguments()
    figures: list[Figure] = []
    try:
        for name in arguments.figures or FIGURES:
            figures += FIGURES[name]()
    except (LabError, StackError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; its labs are taken down", file=sys.stderr)
        return 130
    print(table(figures, machine()), end="")
    return 0 if all(figure.met for figure in figures) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description="Measures the figures of README.md on labs of its own, as ratios within one run, and prints them "
        "as a table. Takes about a quarter of an hour; other work on the machine spoils it.",
    )
    parser.add_argument(
        "figures", nargs="*", metavar="FIGURE", help=f"those of them to measure: {', '.join(FIGURES)} (all by default)"
    )
    arguments = parser.parse_args()
    for name in arguments.figures:
        if name not in FIGURES:
            parser.error(f"there is no figure {name}; there are {', '.join(FIGURES)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
