"""The shape of a `cluster:` block: all that RLinf could read differently, without names and numbers.

    python -m tests.proof.shapes RLINF

reads every config of a clone of RLinf (its commit, not its work tree, so that a bare one will do) and lists the shapes
of their blocks, with the files of each. `test_shapes.py` has the same list, with settings of ours for each shape.

What means the same to RLinf has the same shape here: ranks as numbers or as texts, `0` and `0-0`, a null and a key
left out, a software environment that sets nothing, and a node group that nothing is placed on and that has neither
environment nor hardware: ours are rendered with all groups, RLinf's often with none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FOLDERS = ("examples", "evaluations", "tests")
"""Where RLinf has configs."""

Block = dict[str, Any]


def shape(block: Block) -> str:
    """The shape of a block, on one line."""
    count = block["num_nodes"]
    placements = sorted({placement(names, value) for names, value in block["component_placement"].items()})
    used = set(labels_used(block))
    groups = sorted(
        text
        for group in block.get("node_groups") or []
        if (text := node_group(group, count)) not in PLAIN or str(group["label"]) in used
    )
    known = ("num_nodes", "component_placement", "node_groups")
    options = [option(name, block[name]) for name in sorted(block) if name not in known]
    parts = ["one node" if count == 1 else "several nodes", *placements, *groups, *options]
    return " | ".join(parts)


PLAIN = ("group of one", "group of several")
"""Shapes of groups of which RLinf knows nothing but the nodes."""


def placement(names: str, value: object) -> str:
    """Where something runs: how many components, on what, and the form of the ranks."""
    components = "components" if "," in names else "component"
    where = "nodes"
    if isinstance(value, dict) and "node_group" in value:
        label = str(value["node_group"])
        where = "groups" if "," in label else label if label in ("cluster", "node") else "group"
    ranks = str(value["placement"] if isinstance(value, dict) else value).replace(" ", "")
    ranks = re.sub(r"\b(\d+)-\1\b", r"\1", ranks)
    return f"{components} on {where}: {re.sub(r'[0-9]+', 'N', ranks)}"


def labels_used(block: Block) -> Iterator[str]:
    """Labels that components are placed on."""
    for value in block["component_placement"].values():
        if isinstance(value, dict):
            yield from (label.strip() for label in str(value.get("node_group", "")).split(","))


def node_group(group: Block, count: int) -> str:
    """A node group: how many nodes, environments, robots."""
    ranks = str(group["node_ranks"])
    several = count > 1 if ranks == "all" else len(ranks.split(",")) > 1 or len(set(ranks.split("-"))) > 1
    parts = ["group of several" if several else "group of one"]
    for config in group.get("env_configs") or []:
        told = [name for name in ("env_vars", "python_interpreter_path") if config.get(name)]
        if told:
            parts.append("with " + " and ".join(told))
    if group.get("ignore_hardware"):
        parts.append("with ignore_hardware")
    hardware = group.get("hardware")
    if hardware:
        configs = hardware["configs"]
        names = sorted({name for config in configs for name in config if config[name] is not None} - {"node_rank"})
        parts.append(f"with {len(configs)} {hardware['type']} ({', '.join(names)})")
    return ", ".join(parts)


def option(name: str, value: object) -> str:
    """A further key, with the keys below it."""
    return f"{name} ({', '.join(sorted(value))})" if isinstance(value, dict) else name


def blocks(clone: Path) -> Iterator[tuple[str, Block]]:
    """Every config of RLinf that has a `cluster:` block: its path and the block."""
    listed = git(clone, "ls-tree", "-r", "--name-only", "HEAD", "--", *FOLDERS)
    for path in listed.splitlines():
        if path.endswith((".yaml", ".yml")):
            config = YAML(typ="safe").load(git(clone, "show", f"HEAD:{path}"))
            if isinstance(config, dict) and "cluster" in config:
                yield path, config["cluster"]


def git(clone: Path, *arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", "-C", clone, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Lists the shapes of a clone."""
    found: dict[str, list[str]] = {}
    for path, block in blocks(Path(sys.argv[1])):
        found.setdefault(shape(block), []).append(path)
    print(f"{len(found)} shapes in {sum(map(len, found.values()))} configs")
    for text, paths in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"\n{text}\n    {len(paths)}: " + "\n       ".join(paths[:3] + ["…"] * (len(paths) > 3)))


if __name__ == "__main__":
    main()
