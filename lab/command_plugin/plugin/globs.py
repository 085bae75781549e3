"""Path globs of `assetPaths` and `archivePaths`: `*` stays within a folder, `**` doesn't, `!` excludes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def matching_files(folder: Path, globs: Iterable[str]) -> list[str]:
    """Files under `folder`, as sorted paths relative to it, that the globs choose; the last glob that fits decides."""
    rules = [(not glob.startswith("!"), _compiled(glob.removeprefix("!"))) for glob in globs]
    chosen: list[str] = []
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        verdicts = [includes for includes, pattern in rules if pattern.fullmatch(name)]
        if verdicts and verdicts[-1]:
            chosen.append(name)
    return sorted(chosen)


def _files(folder: Path) -> Iterable[Path]:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            yield from _files(entry)
        else:
            yield entry


def _compiled(glob: str) -> re.Pattern[str]:
    return re.compile(_translated(glob), re.DOTALL)


def _translated(glob: str) -> str:
    result, depth, rest = "", 0, glob
    while rest:
        token = re.match(r"\*\*+|\\.|\[!?[^\]]*\]|.", rest, re.DOTALL)
        text = token.group() if token else rest
        rest = rest[len(text) :]
        if text.startswith("**"):
            result += ".*"
        elif text == "*":
            result += "[^/]*"
        elif text == "?":
            result += "[^/]"
        elif text.startswith("[") and len(text) > 1:
            result += "[" + text[1:-1].replace("\\", "\\\\").replace("!", "^", 1) + "]"
        elif text == "{":
            result, depth = result + "(?:", depth + 1
        elif text == "}" and depth:
            result, depth = result + ")", depth - 1
        elif text == "," and depth:
            result += "|"
        else:
            result += re.escape(text.removeprefix("\\") if len(text) > 1 else text)
    return result
