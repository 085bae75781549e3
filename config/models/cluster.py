"""The value of the Pulumi configuration key `cluster`."""

from __future__ import annotations

from pydantic import Field

from config.models.aws import AwsDefaults
from config.models.base import DeviceName, Line, Model
from config.models.environment import RayEnvironment
from config.models.hosts import Bootstrap, Bootstraps, CloudNode, EdgeHost, RayHost
from config.models.overlay import Overlay
from config.models.ray import Ray
from config.models.reach import SshDefaults
from config.models.rlinf import Rlinf


class Cluster(Model):
    """The value of the Pulumi configuration key `cluster`."""

    extends: Line | None = None
    """YAML file, relative to Pulumi.yaml, with a `cluster` of settings that stacks share. What is set here wins:
    objects are merged key by key, lists and all else are replaced."""
    ssh: SshDefaults = SshDefaults()
    """Defaults for every host's `ssh`."""
    aws: AwsDefaults | None = None
    """Defaults for every host's `aws`, and what they share."""
    overlay: Overlay | None = None
    """The EasyTier network; `{}` takes all defaults. Left out is direct mode: every node already reaches every
    other."""
    device: DeviceName | None = None
    """Direct mode only: network device over which the nodes reach each other, unless a host names its own."""
    bootstrap: Bootstraps | None = None
    """The host at which all others join the overlay, or a list of several; needed unless there is no overlay."""
    cloud: list[CloudNode] = Field(min_length=1)
    """Cloud nodes; the first is the Ray head, rank 0."""
    edges: list[EdgeHost] = Field(default_factory=list[EdgeHost])
    """Edge hosts, ranked after the cloud nodes in the order listed."""
    ray: Ray = Ray()
    """Ray on every node."""
    rlinf: Rlinf
    """What the rendered RLinf config says beyond the hosts."""
    repair: Line | None = None
    """Any new value runs every script again: what drifted is put right, what is healthy is left alone."""

    @property
    def direct(self) -> bool:
        """Whether the nodes reach each other without an overlay."""
        return self.overlay is None

    def ray_environment(self, host: RayHost) -> RayEnvironment:
        """The existing environment of a host's Ray: its own, else that of all hosts, if any."""
        return host.ray or self.ray

    @property
    def bootstraps(self) -> tuple[Bootstrap, ...]:
        """The bootstraps; none in direct mode."""
        if self.bootstrap is None:
            return ()
        return (self.bootstrap,) if isinstance(self.bootstrap, Bootstrap) else tuple(self.bootstrap)

    @property
    def nodes(self) -> tuple[RayHost, ...]:
        """The hosts that can run Ray, in the order listed: cloud nodes, then edges."""
        return (*self.cloud, *self.edges)

    @property
    def hosts(self) -> tuple[Bootstrap | RayHost, ...]:
        """Every host, bootstraps first, then in the order listed."""
        return (*self.bootstraps, *self.nodes)
