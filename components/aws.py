"""EC2 instances, with all that belongs to them: addresses, keys, security groups and, if wanted, a VPC.

What is created stays below what a cluster needs: nothing of Ray is ever let in, every volume is encrypted, and the
metadata service answers sessions only (IMDSv2). Nothing is made in an account that the cluster's own stack does not
take away again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2, vpc

from components import aws_account, aws_failure, cloud_config
from components.aws_account import Launched
from components.host_key import HostKey
from components.launch import Launch
from components.machines import Machine
from config.faults import SettingsError
from config.instance import Instance, Listener
from config.load import Refused, Settings
from config.models import Cluster
from config.rules.hosts import keyed_hosts

_PROJECT = "rlinf-cloud-edge"


def create_instances(settings: Settings, instances: Sequence[Instance]) -> Mapping[str, Machine]:
    """Host name to the machine that is made of its instance.

    Raises:
        Refused: AWS says that the settings are wrong, or lets nobody in.
    """
    cluster = settings.cluster
    try:
        launched = aws_account.ask(cluster, instances)
    except SettingsError as error:
        message = f"{pulumi.get_stack()}: {error}"
        pulumi.log.error(message)
        raise Refused(message) from None
    network = _Network(cluster) if any(each.vpc_id is None for each in launched.values()) else None
    key = _login_key(settings)
    keys = {host.name: where for where, host in keyed_hosts(cluster)}
    jumps = {host.name: host.ssh.jump for host in cluster.hosts if isinstance(host.ssh.jump, str)}
    made: dict[str, Ec2Machine] = {}
    # Those that others are reached through come first: their addresses are let in.
    for instance in sorted(instances, key=lambda each: each.name in jumps):
        args = MachineArgs(instance, launched[instance.name], network, key, keys[instance.name], cluster)
        jump = made.get(jumps.get(instance.name, ""))
        made[instance.name] = Ec2Machine(args, jump.machine.address if jump is not None else None)
    return {instance.name: made[instance.name].machine for instance in instances}


@dataclass(frozen=True)
class LoginKey:
    """The key pair that lets Pulumi log in."""

    name: str
    made: Sequence[pulumi.Resource]
    """It, where it is made here."""


class _Network(pulumi.ComponentResource):
    """A small VPC of the cluster's own."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("rlinf:cloudedge:Network", "network")
        wanted = cluster.aws.vpc if cluster.aws is not None else None
        if wanted is None:
            raise ValueError("no VPC is asked for")
        opts = _options("network", "cluster.aws.vpc", self)
        own = ec2.Vpc(
            "network-vpc",
            cidr_block=str(wanted.cidr),
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=_tags(cluster, "network"),
            opts=opts,
        )
        gateway = ec2.InternetGateway("network-gateway", vpc_id=own.id, tags=_tags(cluster, "network"), opts=opts)
        subnet = ec2.Subnet(
            "network-subnet",
            vpc_id=own.id,
            cidr_block=str(wanted.cidr),
            availability_zone=wanted.zone,
            tags=_tags(cluster, "network"),
            opts=opts,
        )
        table = ec2.RouteTable("network-routes", vpc_id=own.id, tags=_tags(cluster, "network"), opts=opts)
        route = ec2.Route(
            "network-route",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=opts,
        )
        association = ec2.RouteTableAssociation(
            "network-routes-of-subnet", route_table_id=table.id, subnet_id=subnet.id, opts=opts
        )
        self.vpc_id = own.id
        self.subnet_id = subnet.id
        self.way_out: Sequence[pulumi.Resource] = (gateway, route, association)
        """What an instance needs to reach the Internet from its first second on, and until its last."""
        self.register_outputs({"vpc_id": self.vpc_id})


@dataclass(frozen=True)
class MachineArgs:
    """What a machine is made from."""

    instance: Instance
    launched: Launched
    network: _Network | None
    key: LoginKey
    where: str
    """Key of the host in the settings."""
    cluster: Cluster


class Ec2Machine(pulumi.ComponentResource):
    """An EC2 instance with its host key, its address and its security group."""

    def __init__(self, args: MachineArgs, jump: pulumi.Output[str] | None) -> None:
        """Makes one.

        Args:
            args: what it is made from.
            jump: address of the host that it is logged in through, where that is such a machine as well.
        """
        instance = args.instance
        super().__init__("rlinf:cloudedge:Ec2Machine", instance.name)
        pulumi.log.info(f"{instance.name}: {instance.costs}", self)
        self._args = args
        self._opts = _options(instance.name, args.where, self)
        host_key = HostKey(f"{instance.name}-host-key", pulumi.ResourceOptions(parent=self))
        # Without an address of its own, an instance gets another one whenever it is started, and every host that peers
        # with it would have to be told. This one also stays when the instance is replaced.
        address = ec2.Eip(
            f"{instance.name}-address",
            domain="vpc",
            tags=self._tags,
            opts=pulumi.ResourceOptions.merge(self._opts, pulumi.ResourceOptions(depends_on=self._way_out)),
        )
        group, rules = self._security_group(jump)
        made = self._instance(host_key, group, rules)
        associated = ec2.EipAssociation(
            f"{instance.name}-address-of-instance",
            allocation_id=address.id,
            instance_id=made.id,
            # An instance that is ending may hold it for some seconds more.
            allow_reassociation=True,
            # It ends with the instance, also with one that somebody else has terminated.
            opts=pulumi.ResourceOptions.merge(
                self._opts, pulumi.ResourceOptions(delete_before_replace=True, deleted_with=made)
            ),
        )
        self.machine = Machine(
            address=address.public_ip,
            host_key=host_key.public_key,
            identity=made.id,
            resource=made,
            ready=(associated, *rules),
        )
        self.register_outputs({"address": address.public_ip, "instance_id": made.id})

    @property
    def _tags(self) -> dict[str, str]:
        return _tags(self._args.cluster, self._args.instance.name, self._args.instance.tags)

    @property
    def _way_out(self) -> list[pulumi.Resource]:
        return list(self._args.network.way_out) if self._args.network is not None and self._in_network else []

    @property
    def _in_network(self) -> bool:
        return self._args.launched.vpc_id is None

    def _security_group(self, jump: pulumi.Output[str] | None) -> tuple[ec2.SecurityGroup, list[pulumi.Resource]]:
        name = self._args.instance.name
        group = ec2.SecurityGroup(
            f"{name}-group",
            name=f"{_PROJECT}-{pulumi.get_stack()}-{name}",
            description="rlinf-cloud-edge: SSH and EasyTier",
            vpc_id=self._args.network.vpc_id if self._args.network and self._in_network else self._args.launched.vpc_id,
            tags=self._tags,
            opts=self._opts,
        )
        rules: list[pulumi.Resource] = []
        for listener in self._args.instance.listeners:
            rules += [self._let_in(group, listener, str(cidr), str(cidr).replace("/", "-")) for cidr in listener.ranges]
        ssh = next(listener for listener in self._args.instance.listeners if listener.what == "SSH")
        if jump is not None:
            rules.append(self._let_in(group, ssh, jump.apply(lambda address: f"{address}/32"), "jump"))
        rules.append(
            vpc.SecurityGroupEgressRule(
                f"{name}-out",
                security_group_id=group.id,
                description="all: downloads and other hosts",
                ip_protocol="-1",
                cidr_ipv4="0.0.0.0/0",
                tags=self._tags,
                opts=self._opts,
            )
        )
        return group, rules

    def _let_in(
        self, group: ec2.SecurityGroup, listener: Listener, cidr: pulumi.Input[str], label: str
    ) -> vpc.SecurityGroupIngressRule:
        return vpc.SecurityGroupIngressRule(
            f"{self._args.instance.name}-{listener.what.lower()}-{listener.protocol}-{label}",
            security_group_id=group.id,
            description=listener.what,
            ip_protocol=listener.protocol,
            from_port=listener.port,
            to_port=listener.port,
            cidr_ipv4=cidr,
            tags=self._tags,
            opts=self._opts,
        )

    def _instance(self, host_key: HostKey, group: ec2.SecurityGroup, rules: Sequence[pulumi.Resource]) -> ec2.Instance:
        wanted, launched = self._args.instance, self._args.launched
        launch = Launch(
            f"{wanted.name}-launch",
            occasion={"type": wanted.type, "image": wanted.image or wanted.ami, "architecture": launched.architecture},
            offered={"ami": launched.ami, "first_boot": cloud_config.first_boot(wanted.name)},
            opts=pulumi.ResourceOptions(parent=self),
        )
        user_data = pulumi.Output.all(launch.kept, host_key.private_key, host_key.public_key).apply(
            lambda told: base64.b64encode(
                cloud_config.user_data(told[0]["first_boot"], told[1], told[2]).encode()
            ).decode()
        )
        volume = wanted.volume
        network = self._args.network if self._in_network else None
        return ec2.Instance(
            f"{wanted.name}-instance",
            ami=launch.kept.apply(lambda kept: kept["ami"]),
            instance_type=wanted.type,
            key_name=self._args.key.name,
            subnet_id=network.subnet_id if network is not None else wanted.subnet_id,
            vpc_security_group_ids=[group.id, *wanted.security_groups],
            # Until the elastic IP is its address, so that its first boot already reaches the Internet.
            associate_public_ip_address=True,
            user_data_base64=pulumi.Output.secret(user_data),
            user_data_replace_on_change=True,
            root_block_device=ec2.InstanceRootBlockDeviceArgs(
                volume_size=volume.size,
                volume_type=volume.type,
                iops=volume.iops,
                throughput=volume.throughput,
                encrypted=True,
                kms_key_id=volume.kms_key_id,
                delete_on_termination=True,
            ),
            # IMDSv2 only, and one hop: what runs in a container on the host does not reach it.
            metadata_options=ec2.InstanceMetadataOptionsArgs(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
            ),
            instance_market_options=_market(wanted),
            capacity_reservation_specification=_reservation(wanted),
            placement_group=wanted.placement_group,
            iam_instance_profile=wanted.instance_profile,
            monitoring=wanted.monitoring,
            tags=self._tags,
            volume_tags=self._tags,
            opts=pulumi.ResourceOptions.merge(
                self._opts,
                pulumi.ResourceOptions(
                    # Of two machines with one overlay IP and one rank, both would be in the way; and quotas are small.
                    delete_before_replace=True,
                    # AWS would stop a machine to give it another type; here, another one takes its place.
                    replace_on_changes=["instanceType"],
                    depends_on=[*self._args.key.made, *rules, *self._way_out],
                ),
            ),
        )


def _market(wanted: Instance) -> ec2.InstanceInstanceMarketOptionsArgs | None:
    """Spot requests are for one time: a persistent one would buy the next instance when this one is destroyed."""
    if wanted.spot is None:
        return None
    return ec2.InstanceInstanceMarketOptionsArgs(
        market_type="spot",
        spot_options=ec2.InstanceInstanceMarketOptionsSpotOptionsArgs(
            max_price=wanted.spot.max_price,
            spot_instance_type="one-time",
            instance_interruption_behavior="terminate",
        ),
    )


def _reservation(wanted: Instance) -> ec2.InstanceCapacityReservationSpecificationArgs | None:
    choice = wanted.capacity_reservation
    if choice is None:
        return None
    if choice in {"open", "none"}:
        return ec2.InstanceCapacityReservationSpecificationArgs(capacity_reservation_preference=choice)
    return ec2.InstanceCapacityReservationSpecificationArgs(
        capacity_reservation_target=ec2.InstanceCapacityReservationSpecificationCapacityReservationTargetArgs(
            capacity_reservation_id=choice
        )
    )


def _login_key(settings: Settings) -> LoginKey:
    cluster = settings.cluster
    if cluster.aws is not None and cluster.aws.key_name is not None:
        return LoginKey(cluster.aws.key_name, ())
    name = f"{_PROJECT}-{pulumi.get_stack()}"
    # The name is ours, and does not change with the key: an instance that runs need not be replaced for another one.
    pair = ec2.KeyPair(
        "login-key",
        key_name=name,
        public_key=settings.public_key,
        tags=_tags(cluster, "login-key"),
        opts=pulumi.ResourceOptions.merge(
            _options("login-key", "cluster", None), pulumi.ResourceOptions(delete_before_replace=True)
        ),
    )
    return LoginKey(name, (pair,))


def _tags(cluster: Cluster, name: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Whose it is: what the settings say, and what tells one stack's things from another's."""
    wanted = own if own is not None else (cluster.aws.tags if cluster.aws is not None else None) or {}
    return {
        **wanted,
        "Name": f"{pulumi.get_stack()}-{name}",
        f"{_PROJECT}:project": pulumi.get_project(),
        f"{_PROJECT}:stack": pulumi.get_stack(),
    }


def _options(name: str, where: str, parent: pulumi.Resource | None) -> pulumi.ResourceOptions:
    """A parent, and an explanation of what AWS refuses."""

    def hook(args: pulumi.ErrorHookArgs) -> bool:
        found = aws_failure.meaning(args.errors[0] if args.errors else "")
        if found is not None:
            key = aws_failure.where(found, where)
            fix = f"{found.fix[:1].upper()}{found.fix[1:]}"
            again = "run pulumi up again"
            if args.failed_operation == "update":
                # The AWS provider records a failed change as made.
                again = "run pulumi up --refresh, since a plain up does not ask AWS what there is"
            pulumi.log.error(f"{name}: {key}: {found.rule}. {fix}; then {again}.")
        return False

    return pulumi.ResourceOptions(
        parent=parent, hooks=pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(f"explain-aws-{name}", hook)])
    )
