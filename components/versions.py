"""Whether all nodes have the same Ray and Python, told by the facts that their checks end with. Pure.

Ray compares both to the patch level, and turns away a node that differs with a message that few have understood.
"""

from __future__ import annotations

from collections.abc import Mapping

_COMPARED = {"python": "Python", "ray": "Ray"}


def differences(facts: Mapping[str, str]) -> str | None:
    """What to say of nodes that differ; None where all are the same.

    Args:
        facts: name of each node, the head first, to the line `ready ... ray=2.60.0 python=3.11.2 ...`.
    """
    read = {name: dict(word.split("=", 1) for word in line.split() if "=" in word) for name, line in facts.items()}
    head, *others = read
    lines: list[str] = []
    for name in others:
        for fact, label in _COMPARED.items():
            here, there = read[name].get(fact, "unknown"), read[head].get(fact, "unknown")
            if here != there:
                lines.append(f"{name}: {label} is {here} there, and {there} on the head, {head}")
    if not lines:
        return None
    return (
        "Ray needs the same Ray and the same Python on every node, to the last number; no Ray was started or changed.\n"
        + "".join(f"  - {line}\n" for line in lines)
        + "  Install the same on these hosts, or name another environment for them (ray: {venv: …}). Then set "
        "cluster.repair to a new value, so that they are looked at again."
    )
