"""Hosts that are created on Amazon EC2, and the network that they are created in.

Region, profile and credentials are no settings of ours: they come from Pulumi's ordinary AWS configuration
(`aws:region`, `aws:profile`) and from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, Tag, WithJsonSchema

from config.defaults import AwsImage
from config.models.base import Integer, Line, Model, Truth, number_to_text, text_or_number

VolumeType = Literal["gp3", "gp2", "io2", "io1"]

_ID = "[0-9a-f]{8}(?:[0-9a-f]{9})?"
AmiId = Annotated[str, StringConstraints(pattern=rf"^ami-{_ID}$")]
SubnetId = Annotated[str, StringConstraints(pattern=rf"^subnet-{_ID}$")]
SecurityGroupId = Annotated[str, StringConstraints(pattern=rf"^sg-{_ID}$")]
InstanceType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*\.[a-z0-9-]+$", max_length=64)]
Reservation = Annotated[str, StringConstraints(pattern=rf"^(?:open|none|cr-{_ID})$")]
_ZONE = r"^[a-z]{2}(?:-[a-z]+)+-[0-9](?:-[a-z]+-[0-9])?[a-z]$"
Zone = Annotated[str, StringConstraints(pattern=_ZONE)]
_PRICE = r"^[0-9]{1,4}(?:\.[0-9]{1,6})?$"
Price = Annotated[
    str, BeforeValidator(number_to_text), StringConstraints(pattern=_PRICE), WithJsonSchema(text_or_number(_PRICE))
]
# What every AWS service takes (https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html).
_TAG = "[A-Za-z0-9 _.:/=+@-]"
TagName = Annotated[str, StringConstraints(pattern=f"^{_TAG}{{1,128}}$")]
_TAG_VALUE = f"^{_TAG}{{0,256}}$"
TagValue = Annotated[
    str,
    BeforeValidator(number_to_text),
    StringConstraints(pattern=_TAG_VALUE),
    WithJsonSchema(text_or_number(_TAG_VALUE, 256)),
]


def _by_name(value: object) -> str:
    return "\0name" if isinstance(value, str) else "\0ranges"


# A tag of a union begins with a NUL, so that it can be told from a key in the location of a fault.
From = Annotated[
    Annotated[Literal["anywhere"], Tag("\0name")] | Annotated[list[IPv4Network], Field(min_length=1), Tag("\0ranges")],
    Discriminator(_by_name),
]


def _plain(value: object) -> str:
    return "\0plain" if isinstance(value, bool) else "\0options"


class RootVolume(Model):
    """The disk of an instance. It is always encrypted, and goes with the instance."""

    size: Integer | None = Field(default=None, ge=8, le=65_536)
    """GiB; 16 on a bootstrap, 200 with the Deep Learning image, else 64."""
    type: VolumeType | None = None
    """EBS volume type; gp3 by default."""
    iops: Integer | None = Field(default=None, ge=100, le=256_000)
    """I/O operations per second; needed with io1 and io2, and 3000 by default with gp3."""
    throughput: Integer | None = Field(default=None, ge=125, le=2_000)
    """MiB per second, with gp3 only; 125 by default."""
    kms_key_id: Line | None = None
    """ARN or id of the key that it is encrypted with; the account's own key for EBS by default."""


class Spot(Model):
    """Spare capacity, cheaper, which AWS takes back at any time: the host is then gone."""

    max_price: Price | None = None
    """US dollars an hour; what on-demand costs by default."""


SpotChoice = Annotated[
    Annotated[Truth, Tag("\0plain")] | Annotated[Spot, Tag("\0options")],
    Discriminator(_plain),
]


class Vpc(Model):
    """A small network of the cluster's own: one public subnet, an Internet gateway, and a route to it."""

    cidr: IPv4Network = IPv4Network("10.99.0.0/24")
    """Its address range, /16 to /28; neither the overlay's nor one of a network that a host is in."""
    zone: Zone | None = None
    """Availability zone, such as eu-central-1a; AWS chooses by default. Not every zone has every instance type."""


class AwsChoices(Model):
    """What may stand on a host or, for all of them, in `cluster.aws`."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "region": ("the region is Pulumi's own configuration", "pulumi config set aws:region eu-central-1"),
        "profile": ("the profile is Pulumi's own configuration", "pulumi config set aws:profile NAME"),
        "encrypted": ("every volume is encrypted", "remove it; root_volume.kms_key_id names another key"),
        "user_data": ("this program writes the user data itself", "make an image of your own, and name it as ami"),
    }

    image: AwsImage | None = None
    """What it boots: the current image of Debian 12 or Ubuntu 24.04, or the Deep Learning AMI, Ubuntu 24.04 with
    the GPU driver. Debian by default, and the Deep Learning AMI on a host with `gpus`. An instance keeps the image it
    was launched from."""
    ami: AmiId | None = None
    """An image of your own, or any other, by its id; needs `ssh.user`, the account that it lets in. It must have
    cloud-init."""
    root_volume: RootVolume | None = None
    """The disk. What is left out comes from `cluster.aws.root_volume`."""
    spot: SpotChoice | None = None
    """true, or an object with `max_price`: spare capacity, which AWS takes back at any time."""
    capacity_reservation: Reservation | None = None
    """`open` (AWS's default), `none`, or the id of a capacity reservation."""
    placement_group: Line | None = None
    """Name of a placement group that exists."""
    instance_profile: Line | None = None
    """Name of an IAM instance profile that exists."""
    monitoring: Truth | None = None
    """Metrics every minute instead of every five, for a price."""
    subnet_id: SubnetId | None = None
    """A subnet that exists, whose route to the Internet is an Internet gateway; a default subnet by default."""
    security_groups: list[SecurityGroupId] | None = None
    """Further security groups that exist, beside the one of the host."""
    ssh_from: From | None = None
    """Ranges from which Pulumi and you log in, such as [198.51.100.7/32]; `anywhere` is the whole Internet."""
    easytier_from: From | None = None
    """Ranges from which other hosts join at a bootstrap or reach a cloud node; the whole Internet by default, since
    edges move. Strangers have no use for the port: the network is private."""
    tags: dict[TagName, TagValue] | None = Field(default=None, max_length=40)
    """Tags of everything that is created, beside Name and our own."""


class AwsDefaults(AwsChoices):
    """What every host's `aws` takes unless it says otherwise, and what they share."""

    vpc: Vpc | None = None
    """A network of the cluster's own; left out, the default VPC, or that of `subnet_id`. `{}` takes all defaults."""
    key_name: Line | None = None
    """Name of an EC2 key pair that exists, the public half of the key that Pulumi logs in with."""
    public_key: Line | None = None
    """The public half of the key that Pulumi logs in with: `ssh-ed25519 AAAA...`, or the path of a .pub file. Left
    out, that of `cluster.ssh.key_file`."""


class Aws(AwsChoices):
    """An EC2 instance that is created for the host. What is left out comes from `cluster.aws`."""

    instance_type: InstanceType
    """Such as t3.small for a bootstrap, g6e.12xlarge for a node with four GPUs. Another one is another instance."""
