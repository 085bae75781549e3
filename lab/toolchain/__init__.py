"""What the lab needs of Pulumi on this machine: a CLI, its Python language host and the `command` and `aws` plugins.

`ensure()` finds, downloads or builds them, says which, and is quick when they are there. What the mirror
serves is `lab.toolchain.mirror`'s work. Nothing is installed outside the cache directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import aws_plugin, command_plugin
from lab.paths import VENV, Cache
from lab.toolchain import provider_plugin, pulumi_cli

__all__ = ["Toolchain", "ensure"]


@dataclass(frozen=True)
class Toolchain:
    """The Pulumi that is used.

    Attributes:
        bin_dirs: folders for PATH, after the project's own environment; the CLI's comes first.
        pulumi_home: `PULUMI_HOME` of the lab, with the plugins in it.
        substitutes: a sentence for each part that is not the official one: what it is, and why.
        found: a sentence that says which Pulumi is used.
    """

    bin_dirs: list[Path]
    pulumi_home: Path
    substitutes: list[str]
    found: str

    @property
    def pulumi(self) -> Path:
        """The Pulumi CLI."""
        return self.bin_dirs[0] / "pulumi"

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables that a `pulumi` command of this project runs with.

        Args:
            base: the variables to begin with; the process's own when left out.
        """
        environment = dict(os.environ if base is None else base)
        path = [str(folder) for folder in (VENV / "bin", *self.bin_dirs)]
        environment["PATH"] = os.pathsep.join([*path, environment.get("PATH", os.defpath)])
        environment["PULUMI_HOME"] = str(self.pulumi_home)
        environment["PULUMI_SKIP_UPDATE_CHECK"] = "true"
        return environment


def ensure(cache: Cache | None = None) -> Toolchain:
    """Makes sure that Pulumi and its plugins are there.

    Args:
        cache: where they are kept; the one the environment names when left out.

    Raises:
        ValueError: `COMMAND_PLUGIN` or `AWS_PLUGIN` names no folder with a plugin.
        subprocess.CalledProcessError: a build or an installation failed.
        OSError: an official download began and broke.
    """
    cache = cache or Cache.from_environment()
    cli = pulumi_cli.ensure(cache)
    sentences = [
        provider_plugin.ensure(cache, cli.bin_dirs[0] / "pulumi", substitute)
        for substitute in (command_plugin.SUBSTITUTE, aws_plugin.SUBSTITUTE)
    ]
    substitutes = [*cli.substitutes, *filter(None, sentences)]
    return Toolchain(cli.bin_dirs, cache.pulumi_home, substitutes, cli.found)
