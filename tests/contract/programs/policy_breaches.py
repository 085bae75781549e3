"""What no stack of ours may have on AWS: one breach of each rule of the policy pack."""

from __future__ import annotations

import pulumi_aws as aws

tags = {"Name": "x", "rlinf-cloud-edge:project": "x", "rlinf-cloud-edge:stack": "x"}
network = aws.ec2.get_vpc(default=True)
group = aws.ec2.SecurityGroup("group", description="breach", vpc_id=network.id, tags=tags)
for name, port, cidr in (("ray", 6379, "10.0.0.0/8"), ("ssh", 22, "0.0.0.0/0"), ("web", 80, "10.0.0.0/8")):
    aws.vpc.SecurityGroupIngressRule(
        name,
        security_group_id=group.id,
        ip_protocol="tcp",
        from_port=port,
        to_port=port,
        cidr_ipv4=cidr,
        tags=tags,
    )
aws.ec2.Instance(
    "bare",
    ami="ami-0debae12000000001",
    instance_type="t3.micro",
    instance_market_options=aws.ec2.InstanceInstanceMarketOptionsArgs(market_type="spot"),
)
