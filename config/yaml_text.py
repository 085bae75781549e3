"""YAML files that the settings name, read with faults that tell where and what. Pure but for reading the files.

The types of ruamel.yaml are open; they end here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


class FileError(Exception):
    """A file can't be used."""

    def __init__(self, rule: str, fix: str) -> None:
        self.rule, self.fix = rule, fix
        super().__init__(rule)


@dataclass(frozen=True)
class Node:
    """A node of a YAML document, with the lines it stands on, counted from 0."""

    identity: int
    """The same for an anchored node and its aliases, and for no other."""
    first: int
    column: int
    last: int
    """The last line with something of it."""
    flow: bool
    """Whether it is a collection in braces or brackets."""
    text: str | None
    """Of a scalar."""
    pairs: tuple[tuple[Node, Node], ...]
    """Of a mapping."""
    items: tuple[Node, ...]
    """Of a sequence."""

    @property
    def is_block_mapping(self) -> bool:
        """Whether it is one `key:` a line."""
        return bool(self.pairs) and not self.flow

    def all(self) -> Iterator[Node]:
        """The node and all below it."""
        yield self
        for key, value in self.pairs:
            yield from key.all()
            yield from value.all()
        for item in self.items:
            yield from item.all()


def read(folder: Path, name: str) -> str:
    """A file as it is, line ends included.

    Raises:
        FileError: it can't be read.
    """
    try:
        return (folder / name).read_bytes().decode()
    except OSError as error:
        rule = f"must be a file that can be read, relative to Pulumi.yaml: {error.strerror}"
        raise FileError(rule, "correct the path, or remove it") from None
    except UnicodeDecodeError:
        raise FileError("must be a text file in UTF-8", "save it so") from None


def loaded(text: str) -> Any:  # noqa: ANN401  # YAML of any shape
    """What a YAML text says.

    Raises:
        FileError: it is no YAML, or several documents.
    """
    try:
        return cast(Any, YAML(typ="safe", pure=True)).load(text)
    except YAMLError as error:
        raise _fault(error) from None


def composed(text: str) -> Node | None:
    """The nodes of a YAML text; None if it is empty.

    Raises:
        FileError: it is no YAML, or several documents.
    """
    try:
        root = cast(Any, YAML(typ="rt", pure=True)).compose(text)
    except YAMLError as error:
        raise _fault(error) from None
    return None if root is None else _node(root, {})


def _node(raw: Any, seen: dict[int, Node]) -> Node:  # noqa: ANN401  # ruamel.yaml leaves its types open
    if id(raw) in seen:
        return seen[id(raw)]
    value: Any = raw.value
    scalar = isinstance(value, str)
    pairs = () if scalar or raw.id != "mapping" else tuple((_node(k, seen), _node(v, seen)) for k, v in value)
    items = () if scalar or raw.id != "sequence" else tuple(_node(each, seen) for each in value)
    start, end = raw.start_mark, raw.end_mark
    below = [*(each.last for pair in pairs for each in pair), *(each.last for each in items)]
    if below and not raw.flow_style:
        # The mark of a block's end is at what follows it, comments passed over.
        last = max(below)
    elif start.index == end.index:
        # Nothing is written there, and the marks are at what follows.
        last = -1
    else:
        # That of a text over several lines can be at the start of the line after it.
        last = end.line - (1 if end.column == 0 and end.line > start.line else 0)
    flow = bool(not scalar and raw.flow_style)
    node = Node(id(raw), start.line, start.column, last, flow, value if scalar else None, pairs, items)
    seen[id(raw)] = node
    return node


def _fault(error: YAMLError) -> FileError:
    """Where and what, without the text around it, which may hold a secret."""
    mark: Any = getattr(error, "problem_mark", None)
    where = "it can't be read" if mark is None else f"line {mark.line + 1}, column {mark.column + 1} can't be read"
    return FileError(f"must be one YAML document; {where}", "correct the file")
