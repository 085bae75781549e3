"""Ray on every node."""

from __future__ import annotations

from pydantic import Field

from config import defaults
from config.models.base import Integer, Line, Port, Version
from config.models.environment import Environment, RayEnvironment
from config.models.release import RayLock, UvRelease


class Ray(RayEnvironment):
    """The Ray that runs on every node: an environment built here (`uv`), or an existing one (`venv`, `activate`)."""

    version: Version = defaults.RAY_VERSION
    """The exact Ray version; an existing environment must have it."""
    port: Port = 6379
    """Port of the head's GCS."""
    python: Version = "3.11"
    """Python of the managed environment: the same on every node."""
    uv: UvRelease = UvRelease()
    """The pinned uv that builds the managed environment."""
    index_url: Line | None = None
    """Package index of the managed environment instead of uv's default."""
    find_links: Line | None = None
    """URL of a page of wheels, or a folder of wheels on the hosts; with it no index is asked."""
    lock: RayLock | None = None
    """What the managed environment consists of, every wheel by its hash; with it nothing else is installed."""
    join_timeout: Integer = Field(default=180, ge=10, le=3600)
    """Seconds within which every node must have joined."""
    env: Environment = Field(default_factory=dict[str, str])
    """Variables that Ray and every worker get on every node; a host's own `env` wins."""
