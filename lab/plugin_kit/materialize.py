"""Lays out a substitute plugin: its folder for `pulumi plugin install`, and its own virtual environment.

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
from dataclasses import dataclass
from pathlib import Path

_KIT = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Substitute:
    """A plugin of this project that stands in for another.

    Attributes:
        name: what Pulumi calls it: `command`.
        version: of the original.
        home: the package with the provider, `plugin/`, and with `requirements.txt`, what its virtual environment has.
    """

    name: str
    version: str
    home: Path

    @property
    def executable(self) -> str:
        """The file in the plugin's folder that Pulumi runs."""
        return f"pulumi-resource-{self.name}"

    def materialize(self, destination: Path, uv: Path) -> Path:
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
        home = destination.resolve() / self._key()
        folder = home / "plugin"
        if folder.is_dir():
            return folder
        destination.mkdir(parents=True, exist_ok=True)
        with (destination / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                shutil.rmtree(home, ignore_errors=True)
                self._build(home, uv)
        return folder

    @property
    def _provider(self) -> Path:
        return self.home / "plugin"

    @property
    def _requirements(self) -> Path:
        return self.home / "requirements.txt"

    def _key(self) -> str:
        """What the plugin is made of, as 16 hexadecimal digits."""
        digest = hashlib.sha256(f"{sys.version}\n{sys.base_prefix}\n".encode())
        for path in (*sorted(self._provider.glob("*.py")), *sorted(_KIT.glob("*.py")), self._requirements):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()[:16]

    def _build(self, home: Path, uv: Path) -> None:
        """Makes the environment in place, because it knows its own path, and the folder last, by a rename."""
        environment = home / "venv"
        python = environment / "bin" / "python"
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(environment))
        _run(
            uv, "pip", "install", "--quiet", "--python", str(python),
            "--no-deps", "--require-hashes", "--compile-bytecode", "--requirements", str(self._requirements),
        )  # fmt: skip
        # Under their own names, so that they import each other as they do here.
        lab = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "lab"
        for source in (_KIT, self._provider):
            target = lab / source.relative_to(_KIT.parent)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([python, "-m", "compileall", "-q", str(lab)], check=True)
        module = f"lab.{self.home.name}.{self._provider.name}"
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            folder = Path(scratch) / "plugin"
            folder.mkdir()
            launcher = folder / self.executable
            launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} -I -m {module} "$@"\n')
            launcher.chmod(0o755)
            folder.rename(home / "plugin")


def _run(uv: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run([str(uv), *arguments], check=True, env=environment)
