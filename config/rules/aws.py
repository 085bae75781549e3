"""Hosts on AWS: their images, disks, networks and who may reach them."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from config.faults import Fault
from config.instance import Instance, instance_of, ranges
from config.models import Aws, AwsChoices, AwsDefaults, Bootstrap, Cluster, RayHost
from config.rules.hosts import keyed_hosts

_DEFAULT_VPC = IPv4Network("172.31.0.0/16")
"""Of every default VPC: https://docs.aws.amazon.com/vpc/latest/userguide/default-vpc-components.html."""
_OWN_TAGS = ("Name", "rlinf-cloud-edge:project", "rlinf-cloud-edge:stack")
_WIDEST_FOR_SSH = 8
# Of a volume type: largest size in GiB, least and most IOPS, and most IOPS for each GiB
# (https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html).
_VOLUMES = {
    "gp3": (65_536, 3_000, 80_000, 500),
    "gp2": (16_384, 0, 0, 0),
    "io1": (16_384, 100, 64_000, 50),
    "io2": (65_536, 100, 256_000, 1_000),
}


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with hosts that are created on AWS, and with what they share."""
    here = [(key, host, host.aws) for key, host in keyed_hosts(cluster) if host.aws is not None]
    yield from _tags("cluster.aws", cluster.aws or AwsDefaults())
    yield from _wide("cluster.aws", cluster.aws or AwsDefaults())
    if not here:
        return
    yield from _network(cluster)
    yield from _login(cluster)
    for key, host, aws in here:
        yield from _of_others(key, host)
        yield from _image(key, cluster, host, aws)
        yield from _ranges(key, cluster, host, aws)
        yield from _tags(f"{key}.aws", aws)
        instance = instance_of(cluster, host)
        if instance is not None:
            yield from _volume(f"{key}.aws.root_volume", instance)
            yield from _market(f"{key}.aws", instance)


def _network(cluster: Cluster) -> Iterator[Fault]:
    shared = cluster.aws or AwsDefaults()
    named = [
        (key, given.subnet_id)
        for key, given in [("cluster.aws", shared), *((f"{key}.aws", host.aws) for key, host in keyed_hosts(cluster))]
        if given is not None and given.subnet_id is not None
    ]
    overlay = cluster.overlay
    if overlay is None:
        rule = "hosts on AWS reach the others by the overlay alone: Ray's ports are open nowhere else"
        yield Fault("cluster.overlay", None, rule, "add `overlay: {}`")
        return
    if shared.vpc is None:
        if not named and overlay.cidr.overlaps(_DEFAULT_VPC):
            rule = f"must not overlap the default VPC, {_DEFAULT_VPC}, which the instances are in"
            fix = "choose another range, or add cluster.aws.vpc"
            yield Fault("cluster.overlay.cidr", str(overlay.cidr), rule, fix)
        return
    for key, subnet in named:
        rule = "an instance is in a subnet that exists or in the cluster's own VPC, not in both"
        yield Fault(f"{key}.subnet_id", subnet, rule, "remove it, or remove cluster.aws.vpc")
    cidr = shared.vpc.cidr
    if not 16 <= cidr.prefixlen <= 28:
        rule = "a VPC has a range of /16 to /28"
        yield Fault("cluster.aws.vpc.cidr", str(cidr), rule, "write one such as 10.99.0.0/24")
    if cidr.overlaps(overlay.cidr):
        rule = f"must not overlap the overlay's range, {overlay.cidr}: there would be two routes"
        yield Fault("cluster.aws.vpc.cidr", str(cidr), rule, "choose another range for one of them")
    if cidr.is_loopback or cidr.is_multicast or cidr.is_link_local or cidr.overlaps(IPv4Network("0.0.0.0/8")):
        rule = "must be a range that hosts can have addresses in"
        yield Fault("cluster.aws.vpc.cidr", str(cidr), rule, "write a private one such as 10.99.0.0/24")


def _login(cluster: Cluster) -> Iterator[Fault]:
    shared = cluster.aws or AwsDefaults()
    if shared.key_name is not None and shared.public_key is not None:
        rule = "an instance lets in one key pair: one that exists or one that is made of a public key"
        yield Fault("cluster.aws.public_key", None, rule, "remove it, or remove cluster.aws.key_name")


def _of_others(key: str, host: Bootstrap | RayHost) -> Iterator[Fault]:
    """What belongs to hosts that exist."""
    if host.public_address is not None:
        rule = "an instance's public address is its elastic IP, which is not known before"
        yield Fault(f"{key}.public_address", host.public_address, rule, "remove it")
    if host.ssh.host_key is not None:
        rule = "the host key of an instance is made by this program, and checked"
        yield Fault(f"{key}.ssh.host_key", host.ssh.host_key, rule, "remove it")


def _image(key: str, cluster: Cluster, host: Bootstrap | RayHost, aws: Aws) -> Iterator[Fault]:
    shared = cluster.aws or AwsDefaults()
    for where, given in ((f"{key}.aws", aws), ("cluster.aws", shared)):
        if given.image is not None and given.ami is not None:
            yield Fault(f"{where}.ami", given.ami, "an instance boots one image", f"remove it, or remove {where}.image")
    instance = instance_of(cluster, host)
    says_user = "user" in cluster.ssh.model_fields_set or host.ssh.user is not None
    if instance is not None and instance.ami is not None and not says_user:
        rule = f"which account {instance.ami} lets in can't be known"
        yield Fault(f"{key}.ssh.user", None, rule, "add it, such as ubuntu, admin or ec2-user")


def _ranges(key: str, cluster: Cluster, host: Bootstrap | RayHost, aws: Aws) -> Iterator[Fault]:
    shared = cluster.aws or AwsDefaults()
    jump = host.ssh.jump
    through = next((other for other in cluster.hosts if other.name == jump and other.aws is not None), None)
    if not ranges(aws, shared, "ssh_from") and through is None:
        rule = "SSH is open to given ranges only"
        fix = "add ssh_from here or to cluster.aws: a list such as [198.51.100.7/32], or `anywhere` for the Internet"
        yield Fault(f"{key}.aws.ssh_from", None, rule, fix)
    yield from _wide(f"{key}.aws", aws)


def _wide(key: str, given: AwsChoices) -> Iterator[Fault]:
    for index, cidr in enumerate(given.ssh_from if isinstance(given.ssh_from, list) else ()):
        if cidr.prefixlen < _WIDEST_FOR_SSH:
            rule = "SSH that is open to most of the Internet is asked for by name"
            fix = "write narrower ranges, or `ssh_from: anywhere`"
            yield Fault(f"{key}.ssh_from[{index}]", str(cidr), rule, fix)


def _tags(key: str, given: AwsChoices) -> Iterator[Fault]:
    for name in given.tags or {}:
        if name.lower().startswith("aws:"):
            yield Fault(f"{key}.tags.{name}", None, "tags that begin with aws: are AWS's own", "rename it")
        elif name in _OWN_TAGS:
            yield Fault(f"{key}.tags.{name}", None, "this program sets this tag itself", "remove it")


def _volume(key: str, instance: Instance) -> Iterator[Fault]:
    volume = instance.volume
    largest, least, most, per_gib = _VOLUMES[volume.type]
    if volume.size > largest:
        rule = f"a {volume.type} volume has at most {largest} GiB"
        yield Fault(f"{key}.size", str(volume.size), rule, "write less, or another type")
    if volume.throughput is not None and volume.type != "gp3":
        rule = f"the throughput of a {volume.type} volume is not chosen"
        yield Fault(f"{key}.throughput", str(volume.throughput), rule, "remove it, or set type: gp3")
    if volume.iops is None:
        if volume.type in {"io1", "io2"}:
            yield Fault(f"{key}.iops", None, f"an {volume.type} volume is bought with its IOPS", "add it, such as 3000")
    elif volume.type == "gp2":
        rule = "the IOPS of a gp2 volume follow from its size"
        yield Fault(f"{key}.iops", str(volume.iops), rule, "remove it, or set type: gp3")
    elif not least <= volume.iops <= min(most, max(least, per_gib * volume.size)):
        top = min(most, max(least, per_gib * volume.size))
        rule = f"a {volume.type} volume of {volume.size} GiB has {least} to {top} IOPS"
        yield Fault(f"{key}.iops", str(volume.iops), rule, "write a number in that range, or a larger volume")
    elif volume.throughput is not None and volume.type == "gp3" and volume.throughput * 4 > volume.iops:
        rule = f"a gp3 volume has at most a quarter of its IOPS as MiB/s: {volume.iops // 4}"
        yield Fault(f"{key}.throughput", str(volume.throughput), rule, "write less, or more iops")
    if volume.iops is None and volume.type == "gp3" and volume.throughput is not None and volume.throughput > 750:
        rule = "a gp3 volume has at most a quarter of its IOPS as MiB/s, and 3000 IOPS by default"
        yield Fault(f"{key}.throughput", str(volume.throughput), rule, f"add iops: {volume.throughput * 4}")


def _market(key: str, instance: Instance) -> Iterator[Fault]:
    if instance.spot is not None and instance.capacity_reservation is not None:
        rule = "a spot instance is in no capacity reservation"
        yield Fault(f"{key}.capacity_reservation", instance.capacity_reservation, rule, "remove it, or spot")
