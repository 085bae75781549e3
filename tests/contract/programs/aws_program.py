"""A stack on EC2 as the program of this project makes one: key pair, group, rules, instance, elastic address."""

from __future__ import annotations

import json
import pathlib

import pulumi
import pulumi_aws as aws

given = json.loads(pathlib.Path("resources.json").read_text())
if given:
    ami = aws.ssm.get_parameter(name="/aws/service/debian/release/12/latest/amd64").value
    network = aws.ec2.get_vpc(default=True)
    key = aws.ec2.KeyPair("key", public_key=given["public_key"])
    group = aws.ec2.SecurityGroup("group", description="contract", vpc_id=network.id, tags={"Name": "contract"})
    aws.vpc.SecurityGroupIngressRule(
        "ssh",
        security_group_id=group.id,
        ip_protocol="tcp",
        from_port=22,
        to_port=22,
        cidr_ipv4="203.0.113.0/24",
    )
    aws.vpc.SecurityGroupEgressRule("out", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0")
    host = aws.ec2.Instance(
        "host",
        ami=ami,
        instance_type=given["instance_type"],
        key_name=key.key_name,
        vpc_security_group_ids=[group.id],
        user_data_base64=pulumi.Output.secret(given["user_data"]),
        root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(volume_size=20, volume_type="gp3", encrypted=True),
        metadata_options=aws.ec2.InstanceMetadataOptionsArgs(http_tokens="required", http_endpoint="enabled"),
        tags={"Name": "host"},
    )
    address = aws.ec2.Eip("address", domain="vpc")
    aws.ec2.EipAssociation("association", allocation_id=address.allocation_id, instance_id=host.id)
    pulumi.export("address", address.public_ip)
    pulumi.export("instance", host.id)
