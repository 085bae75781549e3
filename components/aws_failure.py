"""What AWS's errors mean in terms of the settings, and what to do about them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """What an error of AWS says about the settings."""

    key: str
    """The setting that it is about, below the host's own; empty: none of a host's."""
    rule: str
    fix: str


_QUOTA = "https://console.aws.amazon.com/servicequotas"

_MEANINGS: tuple[tuple[str, Meaning], ...] = (
    (
        (
            r"no valid credential|NoCredentialProviders|no EC2 IMDS role found|Unable to locate credentials"
            r"|unable to validate AWS credentials|failed to (refresh|retrieve) .*credential"
        ),
        Meaning(
            "",
            "Pulumi finds no credentials for AWS",
            "log in (`aws sso login`), name a profile (`pulumi config set aws:profile NAME`), or set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY",
        ),
    ),
    (
        r"Missing region|Invalid AWS Region|region is required|You must specify a region",
        Meaning("", "no AWS region, or an unknown one, is set", "pulumi config set aws:region eu-central-1"),
    ),
    (
        (
            r"ExpiredToken|RequestExpired|token .*expired|InvalidClientTokenId|AuthFailure|SignatureDoesNotMatch"
            r"|UnrecognizedClient"
        ),
        Meaning("", "AWS does not take the credentials", "log in again, or correct aws:profile and the AWS_ variables"),
    ),
    (
        r"UnauthorizedOperation|AccessDenied|not authorized to perform",
        Meaning("", "the credentials are not allowed to do this", "let whoever owns the account allow it"),
    ),
    (
        r"InvalidInstanceType|supplied instance types? do(es)? not exist|Invalid value '[^']*' for InstanceType",
        Meaning(
            "aws.instance_type",
            "the region has no such instance type",
            "correct it; `aws ec2 describe-instance-types` lists those there are",
        ),
    ),
    (
        r"VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded",
        Meaning(
            "aws.instance_type",
            "the account's quota does not allow this instance beside those it has",
            f"ask for more at {_QUOTA} (Amazon EC2, the vCPUs of that family), or choose a smaller type",
        ),
    ),
    (
        (
            r"InsufficientInstanceCapacity|InsufficientHostCapacity|InsufficientCapacity|ReservationCapacityExceeded"
            r"|capacity-not-available"
        ),
        Meaning(
            "aws.instance_type",
            "AWS has no capacity for this type there at the moment",
            "try again later, or in another zone (aws.subnet_id, cluster.aws.vpc.zone), region or type",
        ),
    ),
    (
        r"Client error on launch|InvalidKMSKey|KMSKeyNotFound|KMSKeyNotAccessible",
        Meaning(
            "aws.root_volume.kms_key_id",
            "AWS has ended the instance as it was launched, as it does when EBS can't use the key of the disk",
            "name a key of this region that the account, and EBS for it, may use, or leave it out",
        ),
    ),
    (
        r"VolumeLimitExceeded|MaxStorageExceeded",
        Meaning(
            "aws.root_volume.size",
            "the account's quota of EBS storage is used up",
            f"write less, or ask for more at {_QUOTA} (Amazon Elastic Block Store)",
        ),
    ),
    (
        r"reported that the resource did not exist while updating",
        Meaning("aws", "what was created here is gone from the account", "have Pulumi make it anew"),
    ),
    (
        r"SpotMaxPriceTooLow",
        Meaning("aws.spot.max_price", "the spot price is above this one", "raise it, or leave it out"),
    ),
    (
        r"\bUnsupported\b|InvalidAvailabilityZone|not supported in your requested Availability Zone",
        Meaning(
            "aws.instance_type",
            "the zone of the subnet does not have this instance type, or not with these options",
            "name a subnet in another zone (aws.subnet_id, cluster.aws.vpc.zone), or choose another type",
        ),
    ),
    (
        r"AddressLimitExceeded",
        Meaning(
            "aws",
            "the account's quota of elastic IPs is used up; every instance has one",
            f"release some, or ask for more at {_QUOTA} (Amazon EC2, elastic IPs)",
        ),
    ),
    (
        r"VpcLimitExceeded|InternetGatewayLimitExceeded",
        Meaning(
            "cluster.aws.vpc",
            "the account's quota of VPCs is used up",
            f"use one that is there (cluster.aws.subnet_id), or ask for more at {_QUOTA} (Amazon VPC)",
        ),
    ),
    (
        r"SecurityGroupLimitExceeded|RulesPerSecurityGroupLimitExceeded",
        Meaning(
            "aws.ssh_from",
            "the account's quota of security groups, or of rules in one, is used up",
            f"list fewer ranges, or ask for more at {_QUOTA} (Amazon VPC)",
        ),
    ),
    (
        r"InvalidAMIID|Your query returned no results",
        Meaning(
            "aws.ami",
            "the region has no such image, or the account may not use it",
            "correct it; the same image has another id in each region",
        ),
    ),
    (
        r"InvalidSubnetID|no matching EC2 Subnet|InvalidSubnet\b",
        Meaning("aws.subnet_id", "the region has no such subnet", "correct it, or leave it out"),
    ),
    (
        r"InvalidBlockDeviceMapping|smaller than snapshot",
        Meaning("aws.root_volume.size", "the image does not fit on this volume", "raise it"),
    ),
    (
        r"cannot be smaller than existing size",
        Meaning(
            "aws.root_volume.size",
            "AWS makes no volume smaller",
            "write the size that it has, or a larger one; a smaller one takes another instance",
        ),
    ),
    (
        r"VolumeModificationRateExceeded|IncorrectModificationState",
        Meaning(
            "aws.root_volume",
            "AWS has only just changed this volume, and changes it again after some hours at the earliest",
            "wait for as long as the error says",
        ),
    ),
    (
        r"InvalidKeyPair\.Duplicate",
        Meaning(
            "cluster.aws.public_key",
            "another stack of this name has a key pair in the region already",
            "name that key pair as cluster.aws.key_name, or give this stack another name",
        ),
    ),
    (
        r"InvalidKeyPair\.NotFound",
        Meaning("cluster.aws.key_name", "the region has no such key pair", "correct it, or use cluster.aws.public_key"),
    ),
    (
        r"InvalidKey\.Format|InvalidKeyFormat",
        Meaning("cluster.aws.public_key", "EC2 can't read this key", "write an Ed25519 or RSA key"),
    ),
    (
        r"InvalidPlacementGroup|InvalidParameterValue.*placement",
        Meaning("aws.placement_group", "the region has no such placement group", "correct it"),
    ),
    (
        r"Invalid IAM Instance Profile|InvalidIamInstanceProfile",
        Meaning("aws.instance_profile", "the account has no such instance profile", "correct it"),
    ),
    (
        r"InvalidCapacityReservation",
        Meaning("aws.capacity_reservation", "the region has no such capacity reservation", "correct it"),
    ),
    (
        r"InvalidGroup|InvalidSecurityGroupID",
        Meaning("aws.security_groups", "the VPC has no such security group", "correct it"),
    ),
    (
        r"OptInRequired|PendingVerification|Blocked",
        Meaning("", "the account is not ready for this region", "activate it in the AWS console"),
    ),
)


def meaning(error: str) -> Meaning | None:
    """What an error of AWS says; None where it is not one that settings or the account can mend."""
    return next((found for pattern, found in _MEANINGS if re.search(pattern, error, re.IGNORECASE)), None)


def where(found: Meaning, host_key: str) -> str:
    """The setting that an error is about.

    Args:
        found: the error.
        host_key: key of the host, such as `cluster.cloud[0]`.
    """
    if found.key.startswith("cluster.") or not found.key:
        return found.key or "aws"
    return f"{host_key}.{found.key}"
