"""Lays out the substitute `command` plugin: its folder for `pulumi plugin install`, its own virtual environment.

It decides nothing about when the substitute is used, and installs it nowhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "1.2.1"
"""The version of the original that the substitute stands in for."""

EXECUTABLE = "pulumi-resource-command"

_HERE = Path(__file__).resolve().parent
_SOURCES = _HERE / "plugin"
_REQUIREMENTS = _HERE / "requirements.txt"
_PACKAGE = "command_plugin"


def materialize(destination: Path, uv: Path) -> Path:
    """The plugin's folder under `destination`, made if it isn't there.

    It is `destination/<key>/plugin`, beside the virtual environment `destination/<key>/venv` that its executable
    runs; the key covers sources, requirements and Python, so an unchanged plugin is made once. Safe to call from
    several processes at once and after being cut off.

    Args:
        destination: A folder for plugins of any key; made if need be.
        uv: The uv executable that makes the virtual environment.

    Raises:
        subprocess.CalledProcessError: uv failed; its own output says why.
    """
    home = destination.resolve() / _key()
    folder = home / "plugin"
    if folder.is_dir():
        return folder
    destination.mkdir(parents=True, exist_ok=True)
    with (destination / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            shutil.rmtree(home, ignore_errors=True)
            _build(home, uv)
    return folder


def _key() -> str:
    """What the plugin is made of, as 16 hexadecimal digits."""
    digest = hashlib.sha256(f"{sys.version}\n{sys.base_prefix}\n".encode())
    for path in (*sorted(_SOURCES.glob("*.py")), _REQUIREMENTS, Path(__file__)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _build(home: Path, uv: Path) -> None:
    """Makes the environment in place, because it knows its own path, and the folder last, by a rename."""
    environment = home / "venv"
    python = environment / "bin" / "python"
    _run(uv, "venv", "--quiet", "--python", sys.executable, str(environment))
    _run(
        uv, "pip", "install", "--quiet", "--python", str(python),
        "--no-deps", "--require-hashes", "--compile-bytecode", "--requirements", str(_REQUIREMENTS),
    )  # fmt: skip
    package = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / _PACKAGE
    shutil.copytree(_SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([python, "-m", "compileall", "-q", str(package)], check=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        folder = Path(scratch) / "plugin"
        folder.mkdir()
        launcher = folder / EXECUTABLE
        launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} -I -m {_PACKAGE} "$@"\n')
        launcher.chmod(0o755)
        folder.rename(home / "plugin")


def _run(uv: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run([str(uv), *arguments], check=True, env=environment)
