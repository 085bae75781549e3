"""An AWS account as the mocks have it: what its functions answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.example_settings import guide

TYPES: dict[str, tuple[list[str], int]] = {
    "t3.small": (["x86_64"], 0),
    "t4g.small": (["arm64"], 0),
    "g6e.12xlarge": (["x86_64"], 4),
    "g6e.48xlarge": (["x86_64"], 8),
    "g4ad.xlarge": (["i386", "x86_64"], 1),
}
"""Instance type to its architectures and its number of GPUs."""
IMAGES = {"ami-0123456789abcdef0": "x86_64", "ami-0aaaaaaaaaaaaaaa0": "arm64"}
SUBNETS = {"subnet-0123456789abcdef0": ("vpc-of-subnet", "172.20.1.0/24")}


def _type(args: dict[str, Any]) -> dict[str, Any]:
    name = args["instanceType"]
    if name not in TYPES:
        raise ValueError(f"InvalidInstanceType: The following supplied instance types do not exist: [{name}]")
    architectures, gpus = TYPES[name]
    gpu = {"count": gpus, "manufacturer": "NVIDIA", "memorySize": 46068, "name": "L40S"}
    return {
        "instanceType": name,
        "supportedArchitectures": architectures,
        "gpuses": [gpu] if gpus else [],
        "neuronDevices": [],
        "inferenceAccelerators": [],
    }


def _ami(args: dict[str, Any]) -> dict[str, Any]:
    (wanted,) = args["filters"][0]["values"]
    if wanted not in IMAGES:
        raise ValueError("Your query returned no results. Please change your search criteria and try again.")
    return {"id": wanted, "architecture": IMAGES[wanted]}


def _subnet(args: dict[str, Any]) -> dict[str, Any]:
    if args["id"] not in SUBNETS:
        raise ValueError("reading EC2 Subnet: no matching EC2 Subnet found")
    vpc, cidr = SUBNETS[args["id"]]
    return {"id": args["id"], "vpcId": vpc, "cidrBlock": cidr}


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": lambda _: {"accountId": "123456789012"},
    "aws:ec2/getInstanceType:getInstanceType": _type,
    "aws:ec2/getAmi:getAmi": _ami,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getVpc:getVpc": lambda _: {"id": "vpc-default", "cidrBlock": "172.31.0.0/16"},
    "aws:ssm/getParameter:getParameter": lambda args: {"value": f"ami-of:{args['name']}"},
}
"""Function to what answers it."""

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"


def guide_on_aws() -> dict[str, Any]:
    """The guide's example with bootstrap and cloud node on AWS, to change as a test needs."""
    raw = guide()
    raw["aws"] = {"public_key": PUBLIC_KEY, "ssh_from": ["198.51.100.7/32"]}
    raw["bootstrap"] = {"overlay_ip": "10.10.0.1", "aws": {"instance_type": "t3.small"}}
    cloud = raw["cloud"][0]
    del cloud["ssh"], cloud["public_address"]
    cloud["aws"] = {"instance_type": "g6e.12xlarge"}
    return raw
