"""Puts the `command` plugin into the lab's own Pulumi home: the one asked for, the official one, or ours.

In this order: the folder that `COMMAND_PLUGIN` names; one that is already in the user's own Pulumi home; the
official download; the substitute from `lab.command_plugin`. The user's own Pulumi home is only read.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.paths import Cache
from lab.progress import note, step
from lab.toolchain.atomic import digest_of_tree, locked
from lab.toolchain.download import available
from lab.toolchain.versions import COMMAND_PLUGIN

_FOLDER = f"resource-command-v{COMMAND_PLUGIN}"
_EXECUTABLE = "pulumi-resource-command"
_OFFICIAL = "official download"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class PluginFolder:
    """A folder that a plugin is installed from, or the official download.

    Attributes:
        folder: what `pulumi plugin install --file` is given; None for the official download.
        origin: differs whenever something else has to be installed.
        sentence: says what is used; empty when it is the official one.
    """

    folder: Path | None
    origin: str
    sentence: str


def ensure(cache: Cache, pulumi: Path) -> str:
    """Installs the `command` plugin unless the right one is there.

    Args:
        cache: whose Pulumi home it goes to.
        pulumi: the CLI.

    Returns:
        A sentence that names the substitute, or an empty one when the official plugin is used.

    Raises:
        ValueError: `COMMAND_PLUGIN` names no folder with a plugin.
        subprocess.CalledProcessError: the installation failed.
    """
    stamp = cache.pulumi_home / "command-plugin.origin"
    with locked(cache, "command-plugin"):
        installed = stamp.read_text() if stamp.is_file() and _installed(cache.pulumi_home) else None
        plugin = _choose(cache, installed)
        if installed != plugin.origin:
            stamp.unlink(missing_ok=True)
            with step(f"Installing the `command` plugin {COMMAND_PLUGIN}"):
                _install(cache, pulumi, plugin)
            stamp.write_text(plugin.origin)
    return plugin.sentence


def given(environment: Mapping[str, str]) -> PluginFolder | None:
    """The plugin that `COMMAND_PLUGIN` names, or None where it is not set.

    Raises:
        ValueError: it names no folder with a plugin.
    """
    value = environment.get("COMMAND_PLUGIN")
    if not value:
        return None
    folder = Path(value).resolve()
    if not os.access(folder / _EXECUTABLE, os.X_OK):
        raise ValueError(f"COMMAND_PLUGIN={value} holds no executable {_EXECUTABLE}; name a folder that does")
    return PluginFolder(folder, f"{folder} {digest_of_tree(folder)}", f"The `command` plugin is the one in {folder}.")


def in_pulumi_home(environment: Mapping[str, str], cache: Cache) -> PluginFolder | None:
    """The plugin in the user's own Pulumi home, or None where there is none."""
    home = Path(environment.get("PULUMI_HOME") or Path(environment.get("HOME") or Path.home()) / ".pulumi")
    if home.resolve() == cache.pulumi_home.resolve() or not _installed(home):
        return None
    folder = home / "plugins" / _FOLDER
    return PluginFolder(folder, f"{folder} {digest_of_tree(folder)}", "")


def _choose(cache: Cache, installed: str | None) -> PluginFolder:
    found = given(os.environ) or in_pulumi_home(os.environ, cache)
    if found is not None:
        return found
    official = PluginFolder(None, _OFFICIAL, "")
    if installed == _OFFICIAL:
        return official
    ours = _materialized(cache) if installed is not None else None
    if ours is not None and installed == ours.origin:
        return ours
    return official if available(_release_url()) else ours or _materialized(cache)


def _materialized(cache: Cache) -> PluginFolder:
    from lab import command_plugin  # noqa: PLC0415  (only a machine without the official plugin needs it)

    folder = command_plugin.materialize(cache.command_plugin, cache.uv)
    sentence = (
        f"The `command` plugin {COMMAND_PLUGIN} is this project's own: the official one is neither on this "
        "machine nor to be downloaded. It is put through the contract suite in tests/contract."
    )
    return PluginFolder(folder, f"{folder} {digest_of_tree(folder)}", sentence)


def _install(cache: Cache, pulumi: Path, plugin: PluginFolder) -> None:
    command: list[str | Path] = [
        pulumi,
        "plugin",
        "install",
        "resource",
        "command",
        COMMAND_PLUGIN,
        "--reinstall",
    ]
    if plugin.folder is not None:
        command += ["--file", plugin.folder]
    cache.pulumi_home.mkdir(parents=True, exist_ok=True)
    result = subprocess.run(
        command,
        env={**os.environ, "PULUMI_HOME": str(cache.pulumi_home), "PULUMI_SKIP_UPDATE_CHECK": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        note(result.stdout)
        raise subprocess.CalledProcessError(result.returncode, command)


def _installed(pulumi_home: Path) -> bool:
    return os.access(pulumi_home / "plugins" / _FOLDER / _EXECUTABLE, os.X_OK)


def _release_url() -> str:
    machine = platform.machine()
    architecture = _ARCHITECTURES.get(machine, machine)
    archive = f"pulumi-resource-command-v{COMMAND_PLUGIN}-linux-{architecture}.tar.gz"
    return f"https://get.pulumi.com/releases/plugins/{archive}"
