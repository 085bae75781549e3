"""What a fresh account knows: images, and the public parameters that name the current ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Image:
    """One public image.

    Attributes:
        identifier: the same in every lab, so that it can be written down.
        user: the account that its instances let their key pair in to.
        parameter: of the Systems Manager, that names it as the current one; empty where none does.
        first_boot: commands that its maker has cloud-init run on the first boot.
    """

    identifier: str
    name: str
    owner: str
    user: str
    architecture: str
    root_device: str
    parameter: str
    first_boot: tuple[str, ...] = ()


_DEBIAN, _CANONICAL, _AMAZON = "136693071363", "099720109477", "898082745236"

FAILING = "ami-0bad0000000000001"
"""An image of one's own whose boot scripts fail, as cloud-init then says."""

IMAGES = (
    Image(
        "ami-0debae12000000001", "debian-12-amd64-20261117-2300", _DEBIAN, "admin", "x86_64", "/dev/xvda",
        "/aws/service/debian/release/12/latest/amd64",
    ),
    Image(
        "ami-0debae12000000002", "debian-12-arm64-20261117-2300", _DEBIAN, "admin", "arm64", "/dev/xvda",
        "/aws/service/debian/release/12/latest/arm64",
    ),
    Image(
        "ami-0abe2404000000001", "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261112", _CANONICAL,
        "ubuntu", "x86_64", "/dev/sda1",
        "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    ),
    Image(
        "ami-0abe2404000000002", "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-20261112", _CANONICAL,
        "ubuntu", "arm64", "/dev/sda1",
        "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id",
    ),
    Image(
        "ami-0dee2404000000001", "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20261110", _AMAZON,
        "ubuntu", "x86_64", "/dev/sda1",
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
    ),
    Image(
        "ami-0dee2404000000002", "Deep Learning Base OSS Nvidia Driver GPU ARM64 AMI (Ubuntu 24.04) 20261110", _AMAZON,
        "ubuntu", "arm64", "/dev/sda1",
        "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
    ),
    Image(
        FAILING, "somebodys-image-whose-first-boot-fails", "123456789012", "admin", "x86_64", "/dev/xvda", "",
        first_boot=("echo 'no licence server' >&2; exit 1",),
    ),
)  # fmt: skip


def image_of(identifier: str) -> Image:
    """An image of this catalog; one that somebody registers is like Debian's."""
    return next((image for image in IMAGES if image.identifier == identifier), IMAGES[0])
