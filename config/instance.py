"""What is asked of EC2 for one host, with the defaults of `cluster.aws` filled in. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal, TypeVar

from config.defaults import AwsImage
from config.models import AwsChoices, AwsDefaults, Bootstrap, CloudNode, Cluster, RayHost, RootVolume, Spot

ANYWHERE = (IPv4Network("0.0.0.0/0"),)
CONNECT_TIMEOUT = 420
"""Seconds that a fresh instance may take to boot up to its sshd; big GPU instances take minutes."""

T = TypeVar("T")


@dataclass(frozen=True)
class Volume:
    """The disk of an instance."""

    size: int
    """GiB."""
    type: str
    iops: int | None
    throughput: int | None
    """MiB per second."""
    kms_key_id: str | None


@dataclass(frozen=True)
class Listener:
    """A port that a security group opens."""

    what: str
    protocol: Literal["tcp", "udp"]
    port: int
    ranges: tuple[IPv4Network, ...]


@dataclass(frozen=True)
class Instance:
    """What is asked of EC2 for one host."""

    name: str
    type: str
    image: AwsImage | None
    """An image by its name; None where `ami` says which."""
    ami: str | None
    volume: Volume
    spot: Spot | None
    capacity_reservation: str | None
    """`open`, `none` or an id; None leaves it to AWS."""
    placement_group: str | None
    instance_profile: str | None
    monitoring: bool
    subnet_id: str | None
    """A subnet that exists; None: one of the cluster's own VPC, or a default one."""
    security_groups: tuple[str, ...]
    listeners: tuple[Listener, ...]
    """All that its security group lets in."""
    tags: Mapping[str, str]
    gpus: int
    """Accelerators that the settings count on."""

    @property
    def costs(self) -> str:
        """What it is that costs money, on one line."""
        bought = "on demand"
        if self.spot is not None:
            bought = f"spot, at most ${self.spot.max_price} an hour" if self.spot.max_price else "spot"
        if self.capacity_reservation is not None and self.capacity_reservation.startswith("cr-"):
            bought = f"in the capacity reservation {self.capacity_reservation}"
        volume = f"{self.volume.size} GiB of {self.volume.type}"
        if self.volume.iops is not None:
            volume += f" with {self.volume.iops} IOPS"
        if self.volume.throughput is not None:
            volume += f" and {self.volume.throughput} MiB/s"
        more = ", detailed monitoring" if self.monitoring else ""
        return f"{self.type} {bought}, {volume}, one elastic IP{more}"


def instance_of(cluster: Cluster, host: Bootstrap | RayHost) -> Instance | None:
    """The instance of a host of validated settings; None for one that is not created here."""
    if host.aws is None or host.lost:
        return None
    given, defaults = host.aws, cluster.aws or AwsDefaults()
    image, ami = _image(host, defaults)
    spot = _first((given.spot, defaults.spot))
    return Instance(
        name=host.name,
        type=given.instance_type,
        image=image,
        ami=ami,
        volume=_volume(host, image, [given, defaults]),
        spot=Spot() if spot is True else spot or None,
        capacity_reservation=_first((given.capacity_reservation, defaults.capacity_reservation)),
        placement_group=_first((given.placement_group, defaults.placement_group)),
        instance_profile=_first((given.instance_profile, defaults.instance_profile)),
        monitoring=_first((given.monitoring, defaults.monitoring)) or False,
        subnet_id=given.subnet_id or defaults.subnet_id,
        security_groups=tuple(_first((given.security_groups, defaults.security_groups)) or ()),
        listeners=tuple(_listeners(cluster, host, given, defaults)),
        tags={**(defaults.tags or {}), **(given.tags or {})},
        gpus=host.gpus if isinstance(host, RayHost) else 0,
    )


def ranges(
    given: AwsChoices, defaults: AwsChoices, key: Literal["ssh_from", "easytier_from"]
) -> tuple[IPv4Network, ...]:
    """The ranges that a port is opened to; none where the settings say nothing."""
    choice = _first((getattr(given, key), getattr(defaults, key)))
    return ANYWHERE if choice == "anywhere" else tuple(choice or ())


def _listeners(cluster: Cluster, host: Bootstrap | RayHost, given: AwsChoices, defaults: AwsChoices) -> list[Listener]:
    """SSH, and EasyTier where others connect to. Ray's ports are never among them: Ray runs on the overlay."""
    port = host.ssh.port or cluster.ssh.port
    listeners = [Listener("SSH", "tcp", port, ranges(given, defaults, "ssh_from"))]
    if cluster.overlay is not None and isinstance(host, (Bootstrap, CloudNode)):
        sources = ranges(given, defaults, "easytier_from") or ANYWHERE
        listeners += [Listener("EasyTier", protocol, cluster.overlay.port, sources) for protocol in ("tcp", "udp")]
    return listeners


def _image(host: Bootstrap | RayHost, defaults: AwsChoices) -> tuple[AwsImage | None, str | None]:
    """A host's own image, whichever way it is named, wins over the cluster's."""
    for choices in (host.aws, defaults):
        if choices is not None and (choices.image or choices.ami):
            return choices.image, choices.ami
    return "deep-learning" if isinstance(host, RayHost) and host.gpus else "debian", None


def _volume(host: Bootstrap | RayHost, image: AwsImage | None, choices: list[AwsChoices]) -> Volume:
    volumes = [each.root_volume or RootVolume() for each in choices]
    size = 16 if isinstance(host, Bootstrap) else 200 if image == "deep-learning" else 64
    type_ = _first(volume.type for volume in volumes) or "gp3"
    return Volume(
        size=_first(volume.size for volume in volumes) or size,
        type=type_,
        iops=_first(volume.iops for volume in volumes),
        throughput=_first(volume.throughput for volume in volumes),
        kms_key_id=_first(volume.kms_key_id for volume in volumes),
    )


def _first(choices: Iterable[T | None]) -> T | None:
    return next((choice for choice in choices if choice is not None), None)
