"""Pinned releases used where the settings name none.

The SHA-256 sums are of the files at the URLs below, as they stood in November 2026; neither project publishes a
checksum file beside its archives that could be pinned instead.
"""

from typing import Literal

Architecture = Literal["x86_64", "aarch64"]

EASYTIER_VERSION = "2.6.4"
EASYTIER_URL = "https://github.com/EasyTier/EasyTier/releases/download/v{version}/easytier-linux-{arch}-v{version}.zip"
EASYTIER_SHA256: dict[Architecture, str] = {
    "x86_64": "61b659eaedba658fa66fe47d17e1426cdd77e5d02fa15fed447bb4357c09dfd6",
    "aarch64": "f533ec25a7ea714e09f645615012200278058525795cc3bb690ff011aec1a70f",
}

UV_VERSION = "0.9.16"
UV_URL = "https://github.com/astral-sh/uv/releases/download/{version}/uv-{arch}-unknown-linux-musl.tar.gz"
UV_SHA256: dict[Architecture, str] = {
    "x86_64": "35a26bea6aad2c8eb468cdf69baccc7ab79b3d0971a76a6741a687535a2acfad",
    "aarch64": "cb6730e083f17b38aea88c2bdfc3d4c834a832444087d30d7914bd460ae15b79",
}

RAY_VERSION = "2.60.0"

ECHO_PORT = 11009
"""TCP port of the echo service (RFC 862) that every host offers on its overlay address only."""
RPC_PORT = 15910
"""Loopback port of EasyTier's RPC, outside the range 15888 to 15899 that other EasyTiers on the host may use."""
PINNED_PORTS = {
    "the echo service": range(ECHO_PORT, ECHO_PORT + 1),
    "EasyTier's RPC": range(RPC_PORT, RPC_PORT + 1),
    "Ray": range(20001, 20010),
    "Ray's workers": range(20100, 21100),
    "Ray Client": range(23000, 24000),
}
"""What listens on every host at ports that no setting moves: they lie below Linux's ephemeral range (32768 and up)."""

AwsImage = Literal["debian", "ubuntu", "deep-learning"]
IMAGE_PARAMETERS: dict[AwsImage, dict[Architecture, str]] = {
    "debian": {
        "x86_64": "/aws/service/debian/release/12/latest/amd64",
        "aarch64": "/aws/service/debian/release/12/latest/arm64",
    },
    "ubuntu": {
        "x86_64": "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        "aarch64": "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id",
    },
    "deep-learning": {
        "x86_64": "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        "aarch64": "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
    },
}
"""Public SSM parameters, each with the id of the current image: of Debian 12, which the lab's hosts run, Ubuntu 24.04,
and the Deep Learning Base AMI with NVIDIA's driver on Ubuntu 24.04."""
IMAGE_USERS: dict[AwsImage, str] = {"debian": "admin", "ubuntu": "ubuntu", "deep-learning": "ubuntu"}
"""The account that an image lets in by the key pair."""
