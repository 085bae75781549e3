"""What must hold of every resource on AWS, whatever the settings say.

Plain functions over recorded resources: a Pulumi policy pack would check the same inputs, in a process of its own that
each `pulumi` command waits for, and checkov reads no Pulumi programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from components.plan import RayPorts
from config.models import Cluster
from tests.program.harness import Recorder

_PUBLIC = 0
_UNTAGGED = {
    "aws:ec2/eipAssociation:EipAssociation",
    "aws:ec2/route:Route",
    "aws:ec2/routeTableAssociation:RouteTableAssociation",
}
"""What AWS has no tags for."""
_OWN_TAGS = {"Name", "rlinf-cloud-edge:project", "rlinf-cloud-edge:stack"}


def violations(recorder: Recorder, cluster: Cluster) -> list[str]:
    """Every breach: name of the resource, and what is wrong with it."""
    return [f"{name}: {fault}" for name, fault in _all(recorder, cluster)]


def _all(recorder: Recorder, cluster: Cluster) -> Iterator[tuple[str, str]]:
    for name, args in recorder.resources.items():
        if not args.typ.startswith("aws:"):
            continue
        inputs = args.inputs
        if args.typ not in _UNTAGGED and not set(inputs.get("tags", {})) >= _OWN_TAGS:
            yield name, "has not all of our tags"
        match args.typ:
            case "aws:ec2/instance:Instance":
                yield from ((name, fault) for fault in _instance(inputs))
            case "aws:ec2/securityGroup:SecurityGroup":
                if "ingress" in inputs or "egress" in inputs:
                    yield name, "has rules of its own, which this policy does not see"
            case "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule":
                yield from ((name, fault) for fault in _let_in(inputs, cluster))
            case _:
                pass


def _instance(inputs: Mapping[str, Any]) -> Iterator[str]:
    if inputs["rootBlockDevice"].get("encrypted") is not True:
        yield "its volume is not encrypted"
    if inputs["rootBlockDevice"].get("deleteOnTermination") is not True:
        yield "its volume outlives it, and its bill"
    if inputs["metadataOptions"].get("httpTokens") != "required":
        yield "its metadata service answers without a session (IMDSv1)"
    if not set(inputs["volumeTags"]) >= _OWN_TAGS:
        yield "its volume has not all of our tags"
    if not isinstance(inputs["userDataBase64"], dict):
        yield "its user data, with the host key, is no secret"
    spot = inputs.get("instanceMarketOptions")
    if spot is not None and spot["spotOptions"]["spotInstanceType"] != "one-time":
        yield "its spot request buys another instance when this one goes"


def _let_in(inputs: Mapping[str, Any], cluster: Cluster) -> Iterator[str]:
    if inputs["ipProtocol"] not in {"tcp", "udp"} or inputs["fromPort"] != inputs["toPort"]:
        yield "lets in more than one port"
        return
    port = int(inputs["fromPort"])
    ports = RayPorts(gcs=cluster.ray.port)
    if port in ports.fixed or ports.first_worker <= port <= ports.last_worker or 23000 <= port < 24000:
        yield f"lets in a port of Ray: {port}"
    easytier = cluster.overlay.port if cluster.overlay is not None else None
    if port == easytier:
        return
    given = [cluster.aws, *(host.aws for host in cluster.hosts)]
    by_name = any(choices is not None and choices.ssh_from == "anywhere" for choices in given)
    if ip_network(inputs["cidrIpv4"]).prefixlen == _PUBLIC and not by_name:
        yield "lets in SSH from everywhere, which nobody asked for"
    if port not in {cluster.ssh.port, *(host.ssh.port for host in cluster.hosts)}:
        yield f"lets in port {port}, which is neither SSH's nor EasyTier's"
