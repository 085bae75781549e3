"""What there should be: the instances of the account, read from moto's own objects in this process."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from lab.aws_world.backend import backend
from lab.aws_world.catalog import image_of
from lab.aws_world.firewall import Group, Guest, Rule

_EVERYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class Instance:
    """One instance that is not terminated.

    Attributes:
        runs: whether it should be on.
        reboots: how often a reboot was asked for.
        user: the account that its key pair lets in to.
        first_boot: commands that the maker of its image has cloud-init run on the first boot.
        disk_gib: size of its root volume.
        terminates: it is terminated, not stopped, when it switches itself off.
    """

    name: str
    runs: bool
    reboots: int
    user: str
    first_boot: tuple[str, ...]
    public_key: str
    user_data: bytes
    disk_gib: int
    terminates: bool
    guest: Guest


@dataclass(frozen=True)
class Plan:
    """The instances, the security groups, and the networks they are in (CIDRs)."""

    instances: dict[str, Instance]
    groups: dict[str, Group]
    networks: tuple[str, ...]


def current() -> Plan:
    """What the account says now."""
    ec2 = backend()
    instances: dict[str, Instance] = {}
    for each in list(ec2.all_instances()):
        if each.state in {"running", "pending", "stopped", "stopping"}:
            instances[each.id] = _instance(ec2, each)
    groups: dict[str, Group] = {}
    for by_id in list(ec2.groups.values()):
        for identifier, group in list(by_id.items()):
            groups[identifier] = Group(_rules(group.ingress_rules), _rules(group.egress_rules))
    networks = {str(ec2.get_vpc(each.guest.network).cidr_block) for each in instances.values()}
    return Plan(instances, groups, tuple(sorted(networks)))


def _instance(ec2: Any, found: Any) -> Instance:  # noqa: ANN401  # moto's own
    interface = found.nics[0]
    subnet = interface.subnet
    public = interface.public_ip if _leads_out(ec2, subnet) else None
    key = ec2.key_pairs.get(found.key_name)
    material = key.material_public if key is not None else b""
    volumes = [device.size or 8 for _, device in found.get_block_device_mapping]
    return Instance(
        name=found.id,
        runs=found.state in {"running", "pending"},
        reboots=getattr(found, "lab_reboots", 0),
        user=image_of(found.image_id).user,
        first_boot=image_of(found.image_id).first_boot,
        public_key=material.decode() if isinstance(material, bytes) else str(material),
        user_data=base64.b64decode(str(found.user_data)) if found.user_data else b"",
        disk_gib=max([8, *(int(size) for size in volumes)]),
        terminates=found.instance_initiated_shutdown_behavior == "terminate",
        guest=Guest(
            name=found.id,
            private=interface.private_ip_address,
            public=public,
            network=subnet.vpc_id,
            groups=tuple(sorted(group.id for group in interface.group_set)),
        ),
    )


def _leads_out(ec2: Any, subnet: Any) -> bool:  # noqa: ANN401  # moto's own
    """Whether a subnet's route table, its own or its network's, has a route to an internet gateway."""
    tables = [table for table in list(ec2.route_tables.values()) if table.vpc_id == subnet.vpc_id]
    own = [table for table in tables if any(each.get("SubnetId") == subnet.id for each in table.associations)]
    for table in own or [table for table in tables if table.main_association_id]:
        for route in table.routes:
            if route.destination_cidr_block == _EVERYWHERE and route.gateway is not None:
                return True
    return False


def _rules(found: list[Any]) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for each in list(found):
        cidr, group = each.ip_range.get("CidrIp"), each.source_group.get("GroupId")
        rules.append(
            Rule(
                protocol=str(each.ip_protocol),
                first=each.from_port,
                last=each.to_port,
                cidrs=(cidr,) if cidr else (),
                groups=(group,) if group else (),
            )
        )
    return tuple(rules)
