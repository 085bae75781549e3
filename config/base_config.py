"""The RLinf config that the settings name as their base, cut where its `cluster:` block stands.

Text is cut, not YAML written anew: every other line stays as it was, comments included.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from config.faults import Fault, shown
from config.yaml_text import FileError, Node, composed, read

RENDERED = ("num_nodes", "node_groups", "component_placement")
"""The keys of RLinf's `cluster:` block that follow from the settings."""


@dataclass(frozen=True)
class BaseConfig:
    """A whole RLinf config without its `cluster:` block."""

    before: str
    after: str
    kept: Mapping[str, str]
    """What the block holds beyond hosts and placement, such as `auto_scheduler`: key to its lines, indented by two."""
    newline: str

    def with_cluster(self, block: str, without: Collection[str] = ()) -> str:
        """The file with another block, every other line as it was.

        Args:
            block: YAML text that begins with `cluster:`, is indented by two and ends with a newline.
            without: keys not to keep of the old block.
        """
        kept = "".join(text for name, text in self.kept.items() if name not in without)
        return self.before + block.replace("\n", self.newline) + kept + self.after


def read_base_config(name: str, folder: Path) -> tuple[BaseConfig | None, list[Fault]]:
    """The base config, or what is wrong with it.

    Args:
        name: of the file, relative to the folder.
        folder: with Pulumi.yaml.
    """
    try:
        return split(read(folder, name)), []
    except FileError as error:
        return None, [Fault("cluster.rlinf.base_config", shown(name), error.rule, error.fix)]


def split(text: str) -> BaseConfig:
    """Cuts a config where its `cluster:` block stands, or at its end if it has none.

    Comments at the beginning of a line and blank lines after the block are no part of it; indented comments are.

    Raises:
        FileError: the text is no such config, or can't be cut.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    document = composed(text)
    if document is None or not document.is_block_mapping:
        raise FileError("must be a YAML mapping, one `key:` a line", "name the file of a whole RLinf config")
    blocks = [(key, value) for key, value in document.pairs if key.text == "cluster"]
    if len(blocks) > 1:
        raise FileError("must have one `cluster:`", "remove the others")
    if not blocks:
        return BaseConfig(text if text.endswith("\n") else text + newline, "", {}, newline)
    key, value = blocks[0]
    others = [each for each, _ in value.pairs if each.text not in RENDERED]
    if others and not value.is_block_mapping:
        raise FileError("its `cluster:` must be one `key:` a line", f"write {others[0].text}: on a line of its own")
    _refuse_shared_anchors(document, value)
    lines = text.splitlines(keepends=True)
    last = _last_line(max(key.last, value.last), lines)
    before, after = "".join(lines[: key.first]), "".join(lines[last + 1 :])
    return BaseConfig(before, after, _kept(value, lines, newline), newline)


def _last_line(last: int, lines: list[str]) -> int:
    """The last line of the block, indented comments that follow it included."""
    here = last
    while here + 1 < len(lines) and re.match(r"[ \t]+#|\s*$", lines[here + 1]):
        here += 1
        if lines[here].strip():
            last = here
    return last


def _kept(block: Node, lines: list[str], newline: str) -> dict[str, str]:
    kept: dict[str, str] = {}
    for key, value in block.pairs:
        if key.text is None or key.text in RENDERED:
            continue
        own = [line.removeprefix(" " * key.column) for line in lines[key.first : max(key.last, value.last) + 1]]
        kept[key.text] = "".join(
            f"  {line.rstrip(chr(13) + chr(10))}{newline}" if line.strip() else line for line in own
        )
    return kept


def _refuse_shared_anchors(document: Node, block: Node) -> None:
    """An anchor in what is replaced that is used elsewhere would dangle, and an alias there may hold the anchor."""
    replaced = [value for key, value in block.pairs if key.text in RENDERED] or [block]
    inside = {node.identity for each in replaced for node in each.all()}
    stays = [value for _, value in document.pairs if value is not block]
    stays += [value for _, value in block.pairs if not any(value is each for each in replaced)]
    if any(node.identity in inside for each in stays for node in each.all()):
        raise FileError(
            "what is replaced in its `cluster:` shares a YAML anchor with what stays",
            "write the value out in both places",
        )
