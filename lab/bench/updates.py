"""How long updates take: the first one, one more edge, and one without changes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from lab.bench import plain_ssh
from lab.bench.figure import Figure
from lab.bench.worlds import stack_with, timed, with_edges
from lab.progress import step
from lab.stack import NAME, Stack

_ROUNDS = 3
_FEW, _MANY = 1, 8


def first_update() -> Iterator[Figure]:
    """`pulumi up` of three hosts to a passed gate, against the same scripts by plain ssh, turn by turn."""
    with stack_with(edges=1) as stack:
        with step("First update, once to warm up"):
            stack.up()
            commands = plain_ssh.recorded(stack)
            stack.pulumi("destroy", "--yes")
        by_pulumi: list[float] = []
        by_ssh: list[float] = []
        for turn in range(_ROUNDS):
            with step(f"First update, turn {turn + 1} of {_ROUNDS}: plain ssh, then pulumi up"):
                by_ssh.append(timed(lambda: plain_ssh.run_up(stack, commands)))
                plain_ssh.run_down(stack, commands)
                by_pulumi.append(timed(stack.up))
                stack.pulumi("destroy", "--yes")
        ours, theirs = statistics.median(by_pulumi), statistics.median(by_ssh)
        yield Figure(
            "first `up` to a passed gate, against the same scripts by plain ssh",
            ours / theirs, 1.25, "×", f"{ours:.1f} s : {theirs:.1f} s, three hosts, medians of {_ROUNDS}",
        )  # fmt: skip


def more_edges() -> Iterator[Figure]:
    """One more edge beside many against one beside few, then an update that changes nothing, and the state's size."""
    with stack_with(edges=_MANY + 1) as stack:
        added: dict[int, float] = {}
        for count in (_FEW, _MANY):
            with step(f"An edge more than {count}"):
                stack.change(with_edges(count))
                stack.up()
                before = len(stack.pulumi("stack", "export"))
                stack.change(with_edges(count + 1))
                added[count] = timed(stack.up)
                grown = len(stack.pulumi("stack", "export")) - before
        yield Figure(
            f"adding one edge to {_MANY}, against adding one to {_FEW}",
            added[_MANY] / added[_FEW], 1.3, "×", f"{added[_MANY]:.1f} s : {added[_FEW]:.1f} s",
        )  # fmt: skip
        yield Figure(
            "state an edge", grown / 1000, 12, "KB", "`pulumi stack export`, indented, with an edge more and less"
        )
        with step(f"Updates that change nothing, {_MANY + 1} edges"):
            empty = _empty_program(stack)
            ours = statistics.median(timed(stack.up) for _ in range(_ROUNDS))
            nothing = statistics.median(timed(empty.up) for _ in range(_ROUNDS))
        yield Figure(
            f"`up` with nothing changed, {_MANY + 1} edges, against an empty program's",
            ours / nothing, 2, "×", f"{ours:.1f} s : {nothing:.1f} s",
        )  # fmt: skip


def _empty_program(stack: Stack) -> Stack:
    folder = stack.project / "empty"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: empty\nruntime: python\n")
    (folder / "__main__.py").write_text("")
    (folder / ".venv").symlink_to(Path(stack.project / ".venv").readlink())
    empty = Stack(folder, stack.lab)
    empty.pulumi("stack", "init", f"organization/empty/{NAME}")
    empty.up()
    return empty
