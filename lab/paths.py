"""Where the project keeps what it makes outside the clone: one cache directory, laid out here alone.

Pure: it computes paths from an environment and creates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
"""The root of this clone."""

VENV = CLONE / ".venv"
"""The project's virtual environment, made by `script/bootstrap`."""


@dataclass(frozen=True)
class Cache:
    """The cache directory and its parts. Deleting any of it costs time, never data.

    Attributes:
        root: `$RLINF_CLOUD_EDGE_CACHE`, else `$XDG_CACHE_HOME/rlinf-cloud-edge`, else under `~/.cache`.
    """

    root: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Cache:
        """Finds the cache directory.

        Args:
            environment: variables to look in; the process's own when left out.

        Raises:
            ValueError: the directory named is not an absolute path.
        """
        env = os.environ if environment is None else environment
        if chosen := env.get("RLINF_CLOUD_EDGE_CACHE"):
            return cls(_absolute("RLINF_CLOUD_EDGE_CACHE", chosen))
        if xdg := env.get("XDG_CACHE_HOME"):
            return cls(_absolute("XDG_CACHE_HOME", xdg) / "rlinf-cloud-edge")
        home = env.get("HOME")
        return cls((Path(home) if home else Path.home()) / ".cache" / "rlinf-cloud-edge")

    @property
    def uv(self) -> Path:
        """The pinned uv that `script/bootstrap` installs."""
        return self.root / "tools" / "bin" / "uv"

    @property
    def toolchain(self) -> Path:
        """The Pulumi CLI and language host built here, one folder per build."""
        return self.root / "toolchain"

    @property
    def pulumi_home(self) -> Path:
        """`PULUMI_HOME` of the lab: its plugins go here, never into `~/.pulumi`."""
        return self.root / "pulumi-home"

    def plugin(self, name: str) -> Path:
        """The substitute plugin of a name (`command`, `aws`), one folder per version of its source."""
        return self.root / f"{name}-plugin"

    @property
    def mirror(self) -> Path:
        """What the lab's HTTP mirror serves, as it is."""
        return self.root / "mirror"

    @property
    def rlinf(self) -> Path:
        """RLinf and torch in a relocatable environment, `rlinf/venv`."""
        return self.root / "rlinf"

    @property
    def images(self) -> Path:
        """Base root filesystems of lab hosts, one folder per recipe."""
        return self.root / "images"

    @property
    def labs(self) -> Path:
        """The state of each lab, one folder per lab."""
        return self.root / "labs"

    @property
    def locks(self) -> Path:
        """Lock files that keep two runs from making the same thing at once."""
        return self.root / "locks"


def _absolute(variable: str, value: str) -> Path:
    path = Path(value)
    if not path.is_absolute():
        raise ValueError(f"{variable}={value} is not an absolute path; give one, such as {path.absolute()}")
    return path
