"""Puts a plugin into the lab's own Pulumi home: the one asked for, the official one, or ours.

In this order: the folder that `COMMAND_PLUGIN` (or `AWS_PLUGIN`) names; one that is already in the user's own Pulumi
home; the official download; the substitute from `lab.command_plugin` (or `lab.aws_plugin`). The user's own Pulumi home
is only read.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.paths import Cache
from lab.plugin_kit.materialize import Substitute
from lab.progress import note, step
from lab.toolchain.atomic import digest_of_tree, locked
from lab.toolchain.download import available

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


def ensure(cache: Cache, pulumi: Path, substitute: Substitute) -> str:
    """Installs a plugin unless the right one is there.

    Args:
        cache: whose Pulumi home it goes to.
        pulumi: the CLI.
        substitute: what stands in for it where it can't be had.

    Returns:
        A sentence that names the substitute, or an empty one when the official plugin is used.

    Raises:
        ValueError: the variable names no folder with a plugin.
        subprocess.CalledProcessError: the installation failed.
    """
    stamp = cache.pulumi_home / f"{substitute.name}-plugin.origin"
    with locked(cache, f"{substitute.name}-plugin"):
        there = stamp.is_file() and _installed(cache.pulumi_home, substitute)
        installed = stamp.read_text() if there else None
        plugin = _choose(cache, installed, substitute)
        if installed != plugin.origin:
            stamp.unlink(missing_ok=True)
            with step(f"Installing the `{substitute.name}` plugin {substitute.version}"):
                _install(cache, pulumi, plugin, substitute)
            stamp.write_text(plugin.origin)
    return plugin.sentence


def given(environment: Mapping[str, str], substitute: Substitute) -> PluginFolder | None:
    """The plugin that `COMMAND_PLUGIN` (or `AWS_PLUGIN`) names, or None where it is not set.

    Raises:
        ValueError: it names no folder with a plugin.
    """
    folder = _named(environment, substitute)
    if folder is None:
        return None
    sentence = f"The `{substitute.name}` plugin is the one in {folder}."
    return PluginFolder(folder, f"{folder} {digest_of_tree(folder)}", sentence)


def under_test(environment: Mapping[str, str], cache: Cache, substitute: Substitute) -> Path:
    """The folder of the plugin that the contract suite is run against: the one that is named, or the substitute.

    Raises:
        ValueError: a folder without a plugin is named.
        subprocess.CalledProcessError: the substitute can't be made.
    """
    return _named(environment, substitute) or substitute.materialize(cache.plugin(substitute.name), cache.uv)


def _named(environment: Mapping[str, str], substitute: Substitute) -> Path | None:
    variable = f"{substitute.name.upper()}_PLUGIN"
    value = environment.get(variable)
    if not value:
        return None
    folder = Path(value).resolve()
    if not os.access(folder / substitute.executable, os.X_OK):
        raise ValueError(f"{variable}={value} holds no executable {substitute.executable}; name a folder that does")
    return folder


def in_pulumi_home(environment: Mapping[str, str], cache: Cache, substitute: Substitute) -> PluginFolder | None:
    """The plugin in the user's own Pulumi home, or None where there is none."""
    home = Path(environment.get("PULUMI_HOME") or Path(environment.get("HOME") or Path.home()) / ".pulumi")
    if home.resolve() == cache.pulumi_home.resolve() or not _installed(home, substitute):
        return None
    folder = _folder(home, substitute)
    return PluginFolder(folder, f"{folder} {digest_of_tree(folder)}", "")


def _choose(cache: Cache, installed: str | None, substitute: Substitute) -> PluginFolder:
    found = given(os.environ, substitute) or in_pulumi_home(os.environ, cache, substitute)
    if found is not None:
        return found
    official = PluginFolder(None, _OFFICIAL, "")
    if installed == _OFFICIAL:
        return official
    ours = _materialized(cache, substitute) if installed is not None else None
    if ours is not None and installed == ours.origin:
        return ours
    return official if available(_release_url(substitute)) else ours or _materialized(cache, substitute)


def _materialized(cache: Cache, substitute: Substitute) -> PluginFolder:
    folder = substitute.materialize(cache.plugin(substitute.name), cache.uv)
    sentence = (
        f"The `{substitute.name}` plugin {substitute.version} is this project's own: the official one is neither on "
        "this machine nor to be downloaded. It is put through the contract suite in tests/contract."
    )
    return PluginFolder(folder, f"{folder} {digest_of_tree(folder)}", sentence)


def _install(cache: Cache, pulumi: Path, plugin: PluginFolder, substitute: Substitute) -> None:
    command: list[str | Path] = [
        pulumi,
        "plugin",
        "install",
        "resource",
        substitute.name,
        substitute.version,
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


def _folder(pulumi_home: Path, substitute: Substitute) -> Path:
    return pulumi_home / "plugins" / f"resource-{substitute.name}-v{substitute.version}"


def _installed(pulumi_home: Path, substitute: Substitute) -> bool:
    return os.access(_folder(pulumi_home, substitute) / substitute.executable, os.X_OK)


def _release_url(substitute: Substitute) -> str:
    machine = platform.machine()
    architecture = _ARCHITECTURES.get(machine, machine)
    archive = f"{substitute.executable}-v{substitute.version}-linux-{architecture}.tar.gz"
    return f"https://get.pulumi.com/releases/plugins/{archive}"
