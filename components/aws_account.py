"""What the AWS account says of the settings, asked in the preview: types, images, subnets, and who we are.

Every question is asked once, and all that is wrong is told at once, before anything is created.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import NoReturn, TypeVar

import pulumi_aws as aws
from pulumi_aws import ec2, ssm

from components import aws_failure
from config.defaults import IMAGE_PARAMETERS, Architecture
from config.faults import Fault, SettingsError
from config.instance import Instance
from config.models import Cluster
from config.rules.hosts import keyed_hosts

# AWS's names of architectures; i386 is offered beside x86_64 and is of no use here.
_ARCHITECTURES: Mapping[str, Architecture] = {"x86_64": "x86_64", "arm64": "aarch64"}

_LONGEST = 300

T = TypeVar("T")


@dataclass(frozen=True)
class Launched:
    """What AWS makes of one instance of the settings."""

    architecture: Architecture
    ami: str
    """The image that is current now, or the one that the settings name."""
    vpc_id: str | None
    """Of its subnet; None: the cluster's own VPC."""


class _Refused(Exception):  # noqa: N818  # not shown
    """A question that AWS answers with an error."""


def ask(cluster: Cluster, instances: Sequence[Instance]) -> Mapping[str, Launched]:
    """Host name to what AWS makes of its instance.

    Args:
        cluster: the settings.
        instances: at least one.

    Raises:
        SettingsError: AWS refuses some of them; with every fault.
    """
    return _Account(cluster).launched(instances)


class _Account:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._keys = {host.name: key for key, host in keyed_hosts(cluster)}
        self._faults: list[Fault] = []
        self._answers: dict[tuple[str, str], object] = {}

    def launched(self, instances: Sequence[Instance]) -> Mapping[str, Launched]:
        try:
            self._ask(instances[0], "identity", "", lambda: aws.get_caller_identity().account_id, "aws")
        except _Refused:
            raise SettingsError(self._faults) from None
        found: dict[str, Launched] = {}
        for instance in instances:
            try:
                vpc_id = self._vpc(instance)
                architecture = self._architecture(instance)
                found[instance.name] = Launched(architecture, self._ami(instance, architecture), vpc_id)
            except _Refused:
                continue  # and ask about the others
        if self._faults:
            raise SettingsError(self._faults)
        return found

    def _architecture(self, instance: Instance) -> Architecture:
        def look() -> tuple[Architecture | None, int]:
            told = ec2.get_instance_type(instance_type=instance.type)
            known: list[Architecture] = [
                _ARCHITECTURES[name] for name in told.supported_architectures if name in _ARCHITECTURES
            ]
            accelerators = [*told.gpuses, *(told.neuron_devices or ()), *(told.inference_accelerators or ())]
            return known[0] if known else None, sum(each.count for each in accelerators)

        architecture, gpus = self._ask(instance, "type", instance.type, look, "instance_type")
        key = self._keys[instance.name]
        if architecture is None:
            rule = "EasyTier and Ray are installed for x86_64 and arm64 only"
            self._refuse(Fault(f"{key}.aws.instance_type", instance.type, rule, "choose another type"))
        if instance.gpus > gpus:
            rule = f"{instance.type} has {gpus} accelerators" if gpus else f"{instance.type} has no accelerator"
            self._refuse(Fault(f"{key}.gpus", str(instance.gpus), rule, "correct it, or aws.instance_type"))
        return architecture

    def _ami(self, instance: Instance, architecture: Architecture) -> str:
        if instance.image is not None:
            name = IMAGE_PARAMETERS[instance.image][architecture]
            return self._ask(instance, "parameter", name, lambda: ssm.get_parameter(name=name).value, "image")
        wanted = instance.ami or ""

        def look() -> str:
            filters = [ec2.GetAmiFilterArgs(name="image-id", values=[wanted])]
            return ec2.get_ami(filters=filters, include_deprecated=True).architecture

        found = _ARCHITECTURES.get(self._ask(instance, "ami", wanted, look, "ami"))
        if found != architecture:
            rule = f"{instance.type} is {architecture}, and this image is {found or 'neither x86_64 nor arm64'}"
            key = self._keys[instance.name]
            self._refuse(Fault(f"{key}.aws.ami", wanted, rule, "name an image for it, or choose another type"))
        return wanted

    def _vpc(self, instance: Instance) -> str | None:
        """The VPC of an instance, if it is there already; a range that meets the overlay's makes two routes."""
        if instance.subnet_id is not None:
            subnet_id = instance.subnet_id

            def subnet() -> tuple[str, str]:
                found = ec2.get_subnet(id=subnet_id)
                return found.vpc_id, found.cidr_block

            vpc_id, cidr = self._ask(instance, "subnet", subnet_id, subnet, "subnet_id")
            self._apart(f"{self._keys[instance.name]}.aws.subnet_id", subnet_id, cidr)
            return vpc_id
        if self._cluster.aws is not None and self._cluster.aws.vpc is not None:
            return None

        def default() -> tuple[str, str]:
            found = ec2.get_vpc(default=True)
            return found.id, found.cidr_block

        vpc_id, cidr = self._ask(instance, "vpc", "default", default, "cluster.aws.vpc")
        self._apart("cluster.overlay.cidr", None, cidr)
        return vpc_id

    def _apart(self, key: str, value: str | None, cidr: str) -> None:
        overlay = self._cluster.overlay
        if overlay is not None and overlay.cidr.overlaps(IPv4Network(cidr)):
            rule = f"the network of the instances, {cidr}, must not overlap the overlay's range, {overlay.cidr}"
            self._refuse(Fault(key, value, rule, "choose another range as cluster.overlay.cidr"))

    def _ask(self, instance: Instance, kind: str, value: str, look: Callable[[], T], setting: str) -> T:
        """The answer to a question, which is asked once; its fault is told once, too."""
        asked = (kind, value)
        if asked not in self._answers:
            try:
                self._answers[asked] = look()
            except Exception as error:  # noqa: BLE001  # the SDK raises bare exceptions
                self._answers[asked] = None
                self._faults.append(self._fault(instance, kind, value, str(error), setting))
                raise _Refused from None
        answer = self._answers[asked]
        if answer is None:
            raise _Refused
        return answer  # pyright: ignore[reportReturnType]  # what this very question was answered with

    def _refuse(self, fault: Fault) -> NoReturn:
        if fault not in self._faults:
            self._faults.append(fault)
        raise _Refused

    def _fault(self, instance: Instance, kind: str, value: str, error: str, setting: str) -> Fault:
        key = self._keys[instance.name]
        reason = _reason(error)
        account = aws_failure.meaning(error)
        if account is not None and not account.key:
            return Fault("aws", None, f"{account.rule}: {reason}", account.fix)
        rule, fix = _FAULTS[kind]
        if setting in {"aws", "cluster.aws.vpc"}:
            return Fault(setting, None, f"{rule}: {reason}", fix)
        return Fault(f"{key}.aws.{setting}", value, f"{rule}: {reason}", fix)


_FAULTS = {
    "identity": ("AWS must answer", "check `pulumi config get aws:region` and aws:profile"),
    "type": (
        "the region has no such instance type",
        "correct it; `aws ec2 describe-instance-types` lists those there are",
    ),
    "ami": (
        "the region has no such image, or the account may not use it",
        "correct it; an image has another id in each region",
    ),
    "subnet": ("the region has no such subnet", "correct it, or leave it out"),
    "vpc": (
        "without aws.subnet_id or cluster.aws.vpc, the region needs a default VPC",
        "add `vpc: {}` to cluster.aws for one of the cluster's own",
    ),
    "parameter": ("AWS's public parameter must be readable", "allow ssm:GetParameter, or name an image as ami"),
}
"""What it means that a question is answered with an error: rule and fix."""


def _reason(error: str) -> str:
    """What AWS says, on one line: its own name for the error with its message, or the end of the text."""
    lines = [line.strip(" *\t") for line in error.splitlines() if line.strip(" *\t")]
    text = lines[0] if lines else error
    found = re.search(r"api error ([\w.]+: .*)", error)
    text = found[1] if found else re.sub(r"^.*(?:returned an error|failed): ", "", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
