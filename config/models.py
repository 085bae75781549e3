"""What a user sets, as frozen pydantic models.

Every field is described, unknown keys are refused, and nothing here imports Pulumi or `components`. Rules that
need more than one field of the tree are in `rules.py`; how Pulumi's configuration becomes these models is in
`load.py`.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from config import defaults
from config.defaults import Architecture

# Patterns are texts, so that pydantic's own engine reads them: in Python's, `$` lets a last newline through.

# EasyTier cuts a host name at 32 characters without a word; RFC 1123 gives the alphabet.
HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$", strict=True)]
# IFNAMSIZ is 16 in Linux, with the closing NUL.
DeviceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,15}$", strict=True)]
Port = Annotated[int, Field(ge=1, le=65535)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# One printable line: what a script, a unit or an environment file can hold without a surprise.
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=4096)]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00-\x1f\x7f]*$", max_length=4096)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _number_to_text(value: object) -> object:
    """YAML reads `2.60` or `3.11` as a number; a version is a text. Only the plain forms are let through."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


Version = Annotated[str, BeforeValidator(_number_to_text), StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)+$")]
Placement = Annotated[str, BeforeValidator(_number_to_text), StringConstraints(pattern=r"^[0-9a-z,:-]+$")]


class Model(BaseModel):
    """The base of all settings: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SshDefaults(Model):
    """What every host's `ssh` takes unless it says otherwise."""

    user: Line = "root"
    """The account to log in as: root, or a user with password-free sudo."""
    port: Port = 22
    """TCP port of sshd."""
    key_file: Line | None = None
    """Private key file here. Left out: the SSH agent, which keeps keys out of the state."""
    connect_timeout: int = Field(default=90, ge=5, le=3600)
    """Seconds for which an unreachable host is dialled again before the update fails for it."""


class Ssh(Model):
    """How an existing host is reached. What is left out comes from `cluster.ssh`."""

    address: Line
    """Host name or IP address, as seen from here or, with `jump`, from the jump host."""
    host_key: Line | None = None
    """The host's public key, as in known_hosts without the address: `ssh-ed25519 AAAA...`."""
    jump: HostName | None = None
    """Name of the host to log in through: `bootstrap`, or any other host that is reached directly."""
    user: Line | None = None
    """The account to log in as."""
    port: Port | None = None
    """TCP port of sshd."""
    key_file: Line | None = None
    """Private key file on the machine that runs Pulumi."""
    connect_timeout: int | None = Field(default=None, ge=5, le=3600)
    """Seconds for which an unreachable host is dialled again."""


class Download(Model):
    """A pinned release: where it comes from and what it must hash to."""

    version: Version
    """The exact version."""
    url: Line
    """URL template with `{version}` and `{arch}` (x86_64, aarch64)."""
    sha256: dict[Architecture, Sha256]
    """SHA-256 of the archive for each architecture in use."""


class EasyTierRelease(Download):
    """The EasyTier release every host runs."""

    version: Version = defaults.EASYTIER_VERSION
    """The exact EasyTier version."""
    url: Line = defaults.EASYTIER_URL
    """URL template with `{version}` and `{arch}`; name a mirror here."""
    sha256: dict[Architecture, Sha256] = Field(default_factory=defaults.EASYTIER_SHA256.copy)
    """SHA-256 of the archive for each architecture in use."""


class UvRelease(Download):
    """The uv that builds the managed Ray environment."""

    version: Version = defaults.UV_VERSION
    """The exact uv version."""
    url: Line = defaults.UV_URL
    """URL template with `{version}` and `{arch}`; name a mirror here."""
    sha256: dict[Architecture, Sha256] = Field(default_factory=defaults.UV_SHA256.copy)
    """SHA-256 of the archive for each architecture in use."""


class Overlay(Model):
    """The EasyTier network that all hosts join."""

    network: Line = "rlinf-cloud-edge"
    """EasyTier network name."""
    cidr: IPv4Network = IPv4Network("10.10.0.0/24")
    """Address range of the overlay. It must not contain any host's own address."""
    device: DeviceName = "et0"
    """Name of the TUN device on every host."""
    port: Port = 11010
    """TCP and UDP port EasyTier listens on."""
    mtu: int = Field(default=1380, ge=576, le=1500)
    """EasyTier's MTU in bytes; with encryption the device has 20 less."""
    easytier: EasyTierRelease = EasyTierRelease()
    """The pinned EasyTier release."""


class Host(Model):
    """What bootstrap, cloud nodes and edges have in common."""

    overlay_ip: IPv4Address
    """The host's fixed address in the overlay."""
    ssh: Ssh
    """How the host is reached."""
    public_address: Line | None = None
    """Address at which the other hosts reach this one without the overlay. The bootstrap's defaults to its
    `ssh.address`; a cloud node that has one becomes a second peer of every edge, so that traffic need not pass
    the bootstrap."""


class Bootstrap(Host):
    """The host with a public address at which all others join the overlay."""

    name: HostName = "bootstrap"
    """Name of the host, unique in the cluster."""


class RayHost(Host):
    """A host that runs Ray."""

    name: HostName
    """Name of the host, unique in the cluster."""
    group: HostName
    """Label of the RLinf node group."""
    env: dict[VariableName, Line] = Field(default_factory=dict[str, str])
    """Variables that Ray and every worker on this host get."""


class CloudNode(RayHost):
    """A node in the cloud; the first one is the Ray head, rank 0."""

    group: HostName = "cloud"
    """Label of the RLinf node group."""


class EdgeHost(RayHost):
    """A robot's computer, a workstation, a simulator: a host that nobody's cloud owns."""

    group: HostName = "edge"
    """Label of the RLinf node group."""


class Ray(Model):
    """The Ray that runs on every node: an environment built here (`uv`), or an existing one (`venv`)."""

    version: Version = defaults.RAY_VERSION
    """The exact Ray version; an existing environment must have it."""
    port: Port = 6379
    """Port of the head's GCS."""
    venv: AbsolutePath | None = None
    """An existing virtual environment with Ray on every node, such as the one RLinf is installed in."""
    python: Version = "3.11"
    """Python of the managed environment: the same on every node."""
    uv: UvRelease = UvRelease()
    """The pinned uv that builds the managed environment."""
    index_url: Line | None = None
    """Package index of the managed environment instead of uv's default."""
    find_links: Line | None = None
    """URL of a page of wheels; with it no index is asked."""
    join_timeout: int = Field(default=180, ge=10, le=3600)
    """Seconds within which every node must have joined."""


class PlacementOnGroup(Model):
    """Where a component runs: resources of one node group."""

    node_group: HostName
    """Label of a node group."""
    placement: Placement
    """RLinf's placement grammar, `resources[:processes],...`, such as `0-3`."""


class Rlinf(Model):
    """What the rendered RLinf config says beyond the hosts."""

    component_placement: dict[Line, PlacementOnGroup] = Field(min_length=1)
    """Component (`actor`, or several: `actor,rollout`) to where it runs."""


class Cluster(Model):
    """The value of the Pulumi configuration key `cluster`."""

    ssh: SshDefaults = SshDefaults()
    """Defaults for every host's `ssh`."""
    overlay: Overlay = Overlay()
    """The EasyTier network."""
    bootstrap: Bootstrap
    """The host at which all others join the overlay."""
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
    def nodes(self) -> tuple[RayHost, ...]:
        """The hosts that run Ray, in the order of their ranks."""
        return (*self.cloud, *self.edges)

    @property
    def hosts(self) -> tuple[Bootstrap | RayHost, ...]:
        """Every host, the bootstrap first, then in the order of ranks."""
        return (self.bootstrap, *self.nodes)
