"""What must hold of every resource on AWS, whatever the settings say. Pure: looks at a resource's inputs alone.

The policy pack runs these rules in previews and updates of real stacks, and `tests/program` over what the program
registers with any settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, TypeAlias

Inputs: TypeAlias = "Mapping[str, Any]"
"""A resource's arguments, under the names that Pulumi's engine has for them. A value that is not known yet may raise
as it is read: each rule reads no more than it is about."""

INSTANCE = "aws:ec2/instance:Instance"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
OLD_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"

UNTAGGED = frozenset(
    {
        "aws:ec2/eipAssociation:EipAssociation",
        "aws:ec2/route:Route",
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
    }
)
"""What AWS has no tags for."""
OWN_TAGS = frozenset({"Name", "rlinf-cloud-edge:project", "rlinf-cloud-edge:stack"})
RAY_PORTS = (range(20001, 21100), range(23000, 24000))
"""Ray's ports on every node, but for that of its GCS, which is a setting."""


@dataclass(frozen=True)
class Ports:
    """Which ports a stack's settings open, and to whom."""

    easytier: int | None = 11010
    """None without an overlay."""
    ssh: frozenset[int] = frozenset({22})
    ssh_from_anywhere: bool = False
    """Whether the settings ask for open SSH by name."""
    gcs: int = 6379


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    description: str
    breaches: Callable[[str, Inputs, Ports], Iterator[str]]
    """From a resource's type and inputs to what is wrong with it."""


def breaches(kind: str, inputs: Inputs, ports: Ports) -> Iterator[str]:
    """What is wrong with a resource, by all rules."""
    for rule in RULES:
        yield from rule.breaches(kind, inputs, ports)


def _no_port_of_ray(kind: str, inputs: Inputs, ports: Ports) -> Iterator[str]:
    if kind != INGRESS:
        return
    opened = _opened(inputs)
    for closed in (range(ports.gcs, ports.gcs + 1), *RAY_PORTS):
        first, last = max(opened.start, closed.start), min(opened.stop, closed.stop)
        if first < last:
            yield f"lets in a port of Ray: {first}"
            return


def _no_other_port(kind: str, inputs: Inputs, ports: Ports) -> Iterator[str]:
    if kind == OLD_RULE or (kind == GROUP and ("ingress" in inputs or "egress" in inputs)):
        yield "has rules of its own, which this policy does not see"
    if kind != INGRESS:
        return
    opened = _opened(inputs)
    if len(opened) != 1:
        yield "lets in more than one port"
    elif opened.start not in ports.ssh | {ports.easytier}:
        yield f"lets in port {opened.start}, which is neither SSH's nor EasyTier's"


def _no_open_ssh(kind: str, inputs: Inputs, ports: Ports) -> Iterator[str]:
    if kind != INGRESS or ports.ssh_from_anywhere:
        return
    opened = _opened(inputs)
    if not any(port in opened for port in ports.ssh):
        return
    sources = [str(inputs[name]) for name in ("cidrIpv4", "cidrIpv6") if inputs.get(name)]
    if any(ip_network(source).prefixlen == 0 for source in sources):
        yield "lets in SSH from everywhere, which nobody asked for"


def _encrypted(kind: str, inputs: Inputs, _: Ports) -> Iterator[str]:
    if kind != INSTANCE:
        return
    volume = _block(inputs, "rootBlockDevice")
    if volume.get("encrypted") is not True:
        yield "its volume is not encrypted"
    if volume.get("deleteOnTermination") is not True:
        yield "its volume outlives it, and its bill"


def _sessions_only(kind: str, inputs: Inputs, _: Ports) -> Iterator[str]:
    if kind == INSTANCE and _block(inputs, "metadataOptions").get("httpTokens") != "required":
        yield "its metadata service answers without a session (IMDSv1)"


def _tagged(kind: str, inputs: Inputs, _: Ports) -> Iterator[str]:
    if not kind.startswith("aws:") or kind in UNTAGGED:
        return
    if not set(_block(inputs, "tags")) >= OWN_TAGS:
        yield "has not all of our tags"
    if kind == INSTANCE and not set(_block(inputs, "volumeTags")) >= OWN_TAGS:
        yield "its volume has not all of our tags"


def _bought_once(kind: str, inputs: Inputs, _: Ports) -> Iterator[str]:
    if kind != INSTANCE:
        return
    market = _block(inputs, "instanceMarketOptions")
    if market and _block(market, "spotOptions").get("spotInstanceType") != "one-time":
        yield "its spot request buys another instance when this one goes"


def _block(inputs: Inputs, name: str) -> Inputs:
    """Arguments within an argument; none where it is left out."""
    return inputs.get(name) or {}


def _opened(inputs: Inputs) -> range:
    """The ports that a rule of a security group lets in."""
    if inputs.get("ipProtocol") not in {"tcp", "udp", "6", "17"}:
        return range(65536)
    return range(int(inputs["fromPort"]), int(inputs["toPort"]) + 1)


RULES = (
    Rule("no-port-of-ray", "Nothing of Ray is let in: it is for the overlay alone.", _no_port_of_ray),
    Rule("no-other-port", "Security groups let in SSH and EasyTier, one port a rule.", _no_other_port),
    Rule("no-open-ssh", "SSH is open to given ranges only.", _no_open_ssh),
    Rule("encrypted-volumes", "Volumes are encrypted, and go with their instance.", _encrypted),
    Rule("imdsv2", "The metadata service answers sessions only (IMDSv2).", _sessions_only),
    Rule("tags", "Everything says whose it is.", _tagged),
    Rule("spot-once", "A spot instance is bought once.", _bought_once),
)
