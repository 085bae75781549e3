"""The hosts: bootstraps, cloud nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from config.models.aws import Aws
from config.models.base import (
    DeviceName,
    HostName,
    Integer,
    Label,
    Line,
    Model,
    Truth,
)
from config.models.environment import Environment, RayEnvironment
from config.models.hardware import Hardware
from config.models.reach import Address, Ssh


class Host(Model):
    """What bootstraps, cloud nodes and edges have in common."""

    overlay_ip: IPv4Address | None = None
    """The host's fixed address in the overlay; needed unless there is none (direct mode)."""
    aws: Aws | None = None
    """The host is created on EC2, and goes with its entry."""
    ssh: Ssh = Ssh()
    """How we log in to the host: at its `address`, or at that of the instance; with `join`, over the overlay."""
    public_address: Address | None = None
    """Address at which the other hosts reach this one without the overlay. A bootstrap's defaults to its
    `ssh.address`; a cloud node that has one becomes a further peer of every edge, so that traffic need not pass
    the bootstrap."""
    lost: Truth = False
    """The host is gone for good: nothing logs in to it any more, the others do without it, and once an update has
    passed, its entry can be deleted without a login."""


class Bootstrap(Host):
    """A host with a public address at which all others join the overlay."""

    name: HostName = "bootstrap"
    """Name of the host, unique in the cluster."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "join": ("a bootstrap is where the others join", "write ssh with its address"),
    }


def _several(value: object) -> str:
    return "\0several" if isinstance(value, (list, tuple)) else "\0one"


# A tag of a union begins with a NUL, so that it can be told from a key in the location of a fault.
Bootstraps = Annotated[
    Annotated[Bootstrap, Tag("\0one")] | Annotated[list[Bootstrap], Field(min_length=1), Tag("\0several")],
    Discriminator(_several),
]
Groups = Annotated[
    Annotated[Label, Tag("\0one")] | Annotated[list[Label], Field(min_length=1), Tag("\0several")],
    Discriminator(_several),
]


class RayHost(Host):
    """A host that runs Ray."""

    name: HostName
    """Name of the host, unique in the cluster."""
    join: Literal["overlay", "script"] | None = None
    """For a host that we can't log in to: its owner runs our join script there, an output of this stack. `overlay`:
    it joins the overlay, over which we then log in and do the rest. `script`: it does everything, and we never log
    in."""
    joined: Truth = False
    """With `join`: the owner has run the script. Until then the host is pending: nothing logs in to it, and the gate
    does without it; from then on the gate requires it."""
    group: Groups
    """Label of the RLinf node group, or a list of several."""
    rank: Integer | None = Field(default=None, ge=0, le=99_999)
    """RLinf node rank. Left out, the host takes the first rank that is free, in the order cloud nodes, edges."""
    enabled: Truth = True
    """Whether the host runs Ray. With false it stays in the overlay and keeps its place here, but has no rank."""
    gpus: Integer = Field(default=0, ge=0, le=1024)
    """Accelerators that RLinf finds on the host. Where any host of a group has one, they are what is placed on."""
    hardware: list[Hardware] = Field(default_factory=list[Hardware])
    """Robots that the host drives. Where a group has robots, they are what is placed on."""
    ray: RayEnvironment | None = None
    """Where this host's Ray comes from, in place of what `cluster.ray` says."""
    env: Environment = Field(default_factory=dict[str, str])
    """Variables that Ray and every worker on this host get, over those of `cluster.ray.env`."""
    address: Line | None = None
    """Direct mode only: IP address at which the other nodes reach this one; its `ssh.address` when left out."""
    device: DeviceName | None = None
    """Direct mode only: network device with that address; `cluster.device` when left out."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Labels of the RLinf node groups."""
        return (self.group,) if isinstance(self.group, str) else tuple(self.group)

    @property
    def pending(self) -> bool:
        """Whether its owner is still to run the join script."""
        return self.join is not None and not self.joined and not self.lost

    @property
    def counts(self) -> bool:
        """Whether the host is a node of the Ray cluster."""
        return self.enabled and not self.lost


class CloudNode(RayHost):
    """A node in the cloud; the first one is the Ray head, rank 0."""

    group: Groups = "cloud"
    """Label of the RLinf node group, or a list of several."""


class EdgeHost(RayHost):
    """A robot's computer, a workstation, a simulator: a host that nobody's cloud owns."""

    group: Groups = "edge"
    """Label of the RLinf node group, or a list of several."""
