"""The lives of AWS resources: created, changed in place or anew, refreshed, deleted, gone already."""

from __future__ import annotations

import base64

import pytest

from tests.contract.aws_fixtures import (
    AMI,
    EGRESS,
    EIP,
    EIP_ASSOCIATION,
    GATEWAY,
    GROUP,
    INGRESS,
    INSTANCE,
    KEY_PAIR,
    PUBLIC_KEY,
    ROUTE,
    ROUTE_TABLE,
    SUBNET,
    TABLE_ASSOCIATION,
    VPC,
    World,
    quota,
)
from tests.contract.command_harness import UNKNOWN, CallError, Created, Json, is_secret, secret


@pytest.fixture(scope="module")
def key(world: World) -> str:
    """The name of a key pair."""
    return world.make(KEY_PAIR, {"keyName": "contract", "publicKey": PUBLIC_KEY})[0].id


@pytest.fixture
def arguments(key: str) -> Json:
    """An instance's arguments."""
    return {
        "ami": AMI,
        "instanceType": "t3.micro",
        "keyName": key,
        "userDataBase64": base64.b64encode(b"#cloud-config\n{}").decode(),
        "rootBlockDevice": {"volumeSize": 20, "volumeType": "gp3", "encrypted": True},
        "metadataOptions": {"httpTokens": "required", "httpEndpoint": "enabled"},
        "monitoring": False,
        "tags": {"Name": "contract"},
    }


class TestInstance:
    """An instance is what the program says, and every change of it does what it does at AWS."""

    def test_it_runs_when_it_is_created_and_is_terminated_when_it_is_deleted(
        self, world: World, arguments: Json
    ) -> None:
        created, _ = world.make(INSTANCE, arguments)
        found = world.instance(created.id)
        assert found["State"]["Name"] == "running"
        assert found["MetadataOptions"]["HttpTokens"] == "required"
        state = created.state
        assert state["instanceState"] == "running"
        assert state["publicIp"].startswith("203.0.113.")
        assert state["privateIp"] == found["PrivateIpAddress"]
        assert state["arn"].endswith(f":instance/{created.id}")
        assert state["tags"] == state["tagsAll"] == {"Name": "contract"}
        root = state["rootBlockDevice"]
        assert (root["volumeSize"], root["volumeType"], root["encrypted"]) == (20, "gp3", True)
        world.provider.delete(INSTANCE, state, identifier=created.id)
        assert world.instance(created.id)["State"]["Name"] == "terminated"
        world.provider.delete(INSTANCE, state, identifier=created.id)

    @pytest.mark.parametrize(
        ("change", "replaced"),
        [
            ({"instanceType": "t3.large"}, []),
            ({"userDataBase64": base64.b64encode(b"other").decode()}, []),
            ({"tags": {"Name": "other"}}, []),
            ({"vpcSecurityGroupIds": ["sg-1"]}, []),
            ({"metadataOptions": {"httpTokens": "optional"}}, []),
            ({"rootBlockDevice": {"volumeSize": 30, "volumeType": "gp3", "encrypted": True}}, []),
            ({"rootBlockDevice": {"volumeSize": 20, "volumeType": "gp3", "encrypted": False}}, ["rootBlockDevice"]),
            ({"ami": "ami-1"}, ["ami"]),
            ({"keyName": "other"}, ["keyName"]),
            ({"subnetId": "subnet-1"}, ["subnetId"]),
            ({"placementGroup": "other"}, ["placementGroup"]),
            ({"associatePublicIpAddress": False}, ["associatePublicIpAddress"]),
            ({"instanceMarketOptions": {"marketType": "spot"}}, ["instanceMarketOptions"]),
        ],
    )
    def test_what_replaces_and_what_does_not(
        self, world: World, arguments: Json, change: Json, replaced: list[str]
    ) -> None:
        answer = world.provider.diff(INSTANCE, arguments, {**arguments, **change})
        assert answer["changes"] == "DIFF_SOME"
        assert answer.get("replaces", []) == replaced
        assert all(path.startswith(next(iter(change))) for path in answer["detailedDiff"])

    def test_user_data_replaces_where_the_program_says_so(self, world: World, arguments: Json) -> None:
        old = {**arguments, "userDataReplaceOnChange": True}
        assert world.replaces(INSTANCE, old, {**old, "userDataBase64": "b3RoZXI="}) == ["userDataBase64"]

    def test_the_same_in_another_order_and_without_what_aws_chose_is_no_change(
        self, world: World, arguments: Json
    ) -> None:
        old = {**arguments, "vpcSecurityGroupIds": ["sg-1", "sg-2"], "availabilityZone": "us-east-1a"}
        answer = world.provider.diff(INSTANCE, old, {**arguments, "vpcSecurityGroupIds": ["sg-2", "sg-1"]})
        assert answer["changes"] == "DIFF_NONE"

    def test_type_user_data_groups_volume_and_tags_change_in_place(self, world: World, arguments: Json) -> None:
        first, _ = world.make(GROUP, {"description": "one"})
        second, _ = world.make(GROUP, {"description": "two"})
        created, _ = world.make(INSTANCE, {**arguments, "vpcSecurityGroupIds": [first.id]})
        new = {
            **arguments,
            "instanceType": "t3.large",
            "userDataBase64": base64.b64encode(b"other").decode(),
            "vpcSecurityGroupIds": [second.id],
            "rootBlockDevice": {"volumeSize": 30, "volumeType": "gp3", "encrypted": True},
            "metadataOptions": {"httpTokens": "optional", "httpEndpoint": "enabled"},
            "tags": {"Role": "head"},
        }
        changed = world.change(INSTANCE, created, new)
        found = world.instance(created.id)
        assert (found["InstanceType"], found["State"]["Name"]) == ("t3.large", "running")
        assert [group["GroupId"] for group in found["NetworkInterfaces"][0]["Groups"]] == [second.id]
        assert found["MetadataOptions"]["HttpTokens"] == "optional"
        assert found["Tags"] == [{"Key": "Role", "Value": "head"}]
        assert changed.state["rootBlockDevice"]["volumeSize"] == 30
        assert changed.state["vpcSecurityGroupIds"] == [second.id]
        data = world.ec2.describe_instance_attribute(InstanceId=created.id, Attribute="userData")
        assert base64.b64decode(data["UserData"]["Value"]) == b"other"
        world.provider.delete(INSTANCE, changed.state, identifier=created.id)

    def test_a_preview_knows_what_it_can_know(self, world: World, arguments: Json) -> None:
        before = len(world.ec2.describe_instances()["Reservations"])
        state = world.provider.create(INSTANCE, arguments, preview=True).state
        assert state["publicIp"] == UNKNOWN
        assert state["instanceType"] == "t3.micro"
        assert len(world.ec2.describe_instances()["Reservations"]) == before

    def test_a_refresh_sees_what_happened_outside(self, world: World, arguments: Json) -> None:
        created, inputs = world.make(INSTANCE, arguments)
        world.ec2.stop_instances(InstanceIds=[created.id])
        world.ec2.create_tags(Resources=[created.id], Tags=[{"Key": "Name", "Value": "drifted"}])
        found = world.refresh(INSTANCE, created, inputs)
        assert found["properties"]["instanceState"] == "stopped"
        assert found["inputs"]["tags"] == {"Name": "drifted"}
        assert found["inputs"]["rootBlockDevice"] == inputs["rootBlockDevice"]
        world.ec2.terminate_instances(InstanceIds=[created.id])
        assert "id" not in world.refresh(INSTANCE, created, inputs)

    def test_secret_user_data_stays_secret(self, world: World, arguments: Json) -> None:
        created, _ = world.make(INSTANCE, {**arguments, "userDataBase64": secret("I2Nsb3VkLWNvbmZpZwp7fQ==")})
        assert is_secret(created.state["userDataBase64"])
        assert not is_secret(created.state["publicIp"])
        world.provider.delete(INSTANCE, created.state, identifier=created.id)

    def test_spot_instances_are_spot_instances(self, world: World, arguments: Json) -> None:
        market = {"marketType": "spot", "spotOptions": {"maxPrice": "0.5"}}
        created, _ = world.make(INSTANCE, {**arguments, "instanceMarketOptions": market})
        assert world.instance(created.id)["InstanceLifecycle"] == "spot"
        world.provider.delete(INSTANCE, created.state, identifier=created.id)


class TestFaults:
    """What AWS refuses fails in AWS's own words, and what is wrong without asking it fails in the preview."""

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"ami": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
            ({"instanceType": "t3.nothing"}, "InvalidInstanceType"),
            ({"subnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
            ({"keyName": "nobody"}, "InvalidKeyPair.NotFound"),
        ],
    )
    def test_what_is_not_there_is_named(self, world: World, arguments: Json, change: Json, code: str) -> None:
        with pytest.raises(CallError) as refused:
            world.make(INSTANCE, {**arguments, **change})
        message = refused.value.message
        assert "creating EC2 Instance: operation error EC2: RunInstances" in message
        assert f"api error {code}" in message
        assert str(next(iter(change.values()))) in message

    @pytest.mark.parametrize(
        ("market", "code", "fault"),
        [
            (None, "L-1216C47A", "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU"),
            ("spot", "L-34B43A08", "MaxSpotInstanceCountExceeded: Max spot instance count exceeded"),
        ],
        ids=["on demand", "spot"],
    )
    def test_what_runs_stays_within_the_quota_of_its_kind(
        self, world: World, arguments: Json, *, market: str | None, code: str, fault: str
    ) -> None:
        wanted = {**arguments, "instanceType": "m5.large"}
        if market is not None:
            wanted["instanceMarketOptions"] = {"marketType": market}
        with quota(world.ec2.meta.endpoint_url, code, 2):
            first, _ = world.make(INSTANCE, wanted)  # two vCPUs
            with pytest.raises(CallError, match=fault) as refused:
                world.make(INSTANCE, wanted)
            assert refused.value.recorded is None
            graphics, _ = world.make(INSTANCE, {**arguments, "instanceType": "g4dn.xlarge"})
            # One that stands still does not count, and is not started beside another.
            world.ec2.stop_instances(InstanceIds=[first.id])
            second, _ = world.make(INSTANCE, wanted)
            with pytest.raises(world.ec2.exceptions.ClientError, match=fault.partition(":")[0]):
                world.ec2.start_instances(InstanceIds=[first.id])
        for each in (first, second, graphics):
            world.provider.delete(INSTANCE, each.state, identifier=each.id)

    def test_an_instance_that_ends_as_it_is_launched_is_known_by_its_id(self, world: World, arguments: Json) -> None:
        disk = {**arguments["rootBlockDevice"], "kmsKeyId": "alias/not-there"}
        with pytest.raises(CallError) as refused:
            world.make(INSTANCE, {**arguments, "rootBlockDevice": disk, "userDataBase64": secret("I2Nsb3VkCg==")})
        created = refused.value.recorded
        assert created is not None
        found = world.instance(created["id"])
        assert found["State"]["Name"] == "terminated"
        text = (
            f"waiting for EC2 Instance ({created['id']}) create: unexpected state 'terminated', wanted target "
            "'running'. last error: Client.InternalError: Client error on launch"
        )
        assert text in refused.value.message
        assert text in created["reasons"][0]
        assert created["properties"]["instanceType"] == "t3.micro"
        assert is_secret(created["properties"]["userDataBase64"])
        world.provider.delete(INSTANCE, created["properties"], identifier=created["id"])

    def test_a_refused_change_is_recorded_as_made_all_the_same(self, world: World, arguments: Json) -> None:
        created, _ = world.make(INSTANCE, {**arguments, "instanceType": "m5.large"})
        larger = {**arguments, "instanceType": "m5.xlarge", "userDataBase64": secret("I2Nsb3VkCg==")}
        with (
            quota(world.ec2.meta.endpoint_url, "L-1216C47A", 2),
            pytest.raises(CallError, match="VcpuLimitExceeded") as refused,
        ):
            world.change(INSTANCE, created, larger)
        assert world.instance(created.id)["State"]["Name"] == "stopped"
        recorded = refused.value.recorded
        assert recorded is not None
        assert recorded["id"] == created.id
        assert "VcpuLimitExceeded" in recorded["reasons"][0]
        assert recorded["properties"]["instanceType"] == "m5.xlarge"
        assert recorded["properties"]["rootBlockDevice"]["volumeId"] == created.state["rootBlockDevice"]["volumeId"]
        assert is_secret(recorded["properties"]["userDataBase64"])
        # So nothing is left to change, the quota notwithstanding.
        changed = world.change(INSTANCE, Created(created.id, recorded["properties"]), larger)
        assert world.instance(created.id)["State"]["Name"] == "stopped"
        world.provider.delete(INSTANCE, changed.state, identifier=created.id)

    def test_an_address_that_can_not_be_given_to_what_it_is_for_is_known_by_its_id(self, world: World) -> None:
        with pytest.raises(CallError, match="AssociateAddress") as refused:
            world.make(EIP, {"domain": "vpc", "instance": "i-0123456789abcdef0"})
        created = refused.value.recorded
        assert created is not None
        assert created["id"] in {each["AllocationId"] for each in world.ec2.describe_addresses()["Addresses"]}
        world.provider.delete(EIP, created["properties"], identifier=created["id"])

    @pytest.mark.parametrize(
        ("kind", "inputs", "path", "text"),
        [
            (KEY_PAIR, {}, "publicKey", "Missing required argument"),
            (INGRESS, {"ipProtocol": "tcp"}, "securityGroupId", "Missing required argument"),
            (INSTANCE, {"amy": "ami-1"}, "amy", "Invalid or unknown key"),
            (INSTANCE, {"tags": "x"}, "tags", "expected"),
        ],
    )
    def test_wrong_arguments_fail_the_check(self, world: World, kind: str, inputs: Json, path: str, text: str) -> None:
        _, failures = world.provider.check(kind, inputs)
        assert any(text in failure["reason"] and path in failure["reason"] for failure in failures), failures


class TestNames:
    """A thing without a name gets one of its own, and keeps it; one with a name is deleted before its replacement."""

    def test_a_name_is_made_once(self, world: World) -> None:
        inputs, _ = world.provider.check(GROUP, {"description": "d"})
        assert inputs["name"].startswith("x-")
        assert inputs["__defaults"]

    def test_a_named_group_goes_before_its_replacement(self, world: World) -> None:
        old = {"name": "fixed", "description": "a", "__defaults": []}
        answer = world.provider.diff(GROUP, old, {**old, "description": "b"})
        assert answer["replaces"] == ["description"]
        assert answer["deleteBeforeReplace"] is True


class TestSecurityGroups:
    """A group lets through what the program says and nothing else, outwards neither."""

    def test_rules_come_change_in_place_and_go(self, world: World) -> None:
        group, _ = world.make(GROUP, {"description": "contract"})
        found = world.ec2.describe_security_groups(GroupIds=[group.id])["SecurityGroups"][0]
        assert found["IpPermissionsEgress"] == []
        inputs = {
            "securityGroupId": group.id,
            "ipProtocol": "tcp",
            "fromPort": 22,
            "toPort": 22,
            "cidrIpv4": "203.0.113.0/24",
            "description": "ssh",
        }
        rule, _ = world.make(INGRESS, inputs)
        way_out, _ = world.make(EGRESS, {"securityGroupId": group.id, "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"})
        assert world.replaces(INGRESS, inputs, {**inputs, "fromPort": 23}) == []
        assert world.replaces(INGRESS, inputs, {**inputs, "securityGroupId": "sg-1"}) == ["securityGroupId"]
        world.change(INGRESS, rule, {**inputs, "cidrIpv4": "198.51.100.0/24"})
        found = world.ec2.describe_security_groups(GroupIds=[group.id])["SecurityGroups"][0]
        assert [each["CidrIp"] for each in found["IpPermissions"][0]["IpRanges"]] == ["198.51.100.0/24"]
        assert world.refresh(EGRESS, way_out, {})["id"] == way_out.id
        for kind, each in ((INGRESS, rule), (EGRESS, way_out)):
            world.provider.delete(kind, each.state, identifier=each.id)
            assert "id" not in world.refresh(kind, each, inputs)
            world.provider.delete(kind, each.state, identifier=each.id)
        world.provider.delete(GROUP, group.state, identifier=group.id)
        world.provider.delete(GROUP, group.state, identifier=group.id)

    def test_a_refused_change_of_a_rule_is_not_recorded(self, world: World) -> None:
        group, _ = world.make(GROUP, {"description": "contract"})
        inputs = {"securityGroupId": group.id, "ipProtocol": "tcp", "fromPort": 22, "toPort": 22}
        rule, _ = world.make(INGRESS, {**inputs, "cidrIpv4": "203.0.113.0/24"})
        world.provider.delete(GROUP, group.state, identifier=group.id)
        with pytest.raises(CallError) as refused:
            world.change(INGRESS, rule, {**inputs, "cidrIpv4": "198.51.100.0/24"})
        assert refused.value.recorded is None

    def test_a_rule_has_exactly_one_source(self, world: World) -> None:
        group, _ = world.make(GROUP, {"description": "contract"})
        inputs = {"securityGroupId": group.id, "ipProtocol": "tcp", "fromPort": 1, "toPort": 1}
        with pytest.raises(CallError, match="Exactly one of these attributes must be configured"):
            world.make(INGRESS, inputs)

    def test_inline_rules_are_replaced_as_a_whole(self, world: World) -> None:
        def ports(*numbers: int) -> list[Json]:
            return [
                {"protocol": "tcp", "fromPort": number, "toPort": number, "cidrBlocks": ["0.0.0.0/0"]}
                for number in numbers
            ]

        group, _ = world.make(GROUP, {"description": "inline", "ingress": ports(22)})
        world.change(GROUP, group, {"description": "inline", "name": group.state["name"], "ingress": ports(80, 443)})
        found = world.ec2.describe_security_groups(GroupIds=[group.id])["SecurityGroups"][0]
        assert sorted(each["FromPort"] for each in found["IpPermissions"]) == [80, 443]
        world.provider.delete(GROUP, group.state, identifier=group.id)


class TestAddresses:
    """An elastic address is allocated, goes to an instance, stays through a stop, and is given back."""

    def test_one_goes_to_an_instance_and_back(self, world: World, arguments: Json) -> None:
        instance, _ = world.make(INSTANCE, arguments)
        address, _ = world.make(EIP, {"domain": "vpc", "tags": {"a": "b"}})
        link, _ = world.make(EIP_ASSOCIATION, {"allocationId": address.id, "instanceId": instance.id})
        assert world.instance(instance.id)["PublicIpAddress"] == address.state["publicIp"]
        world.ec2.stop_instances(InstanceIds=[instance.id])
        world.ec2.start_instances(InstanceIds=[instance.id])
        assert world.instance(instance.id)["PublicIpAddress"] == address.state["publicIp"]
        assert world.refresh(EIP_ASSOCIATION, link, {})["properties"]["publicIp"] == address.state["publicIp"]
        for kind, each in ((EIP_ASSOCIATION, link), (EIP, address), (INSTANCE, instance)):
            world.provider.delete(kind, each.state, identifier=each.id)
            world.provider.delete(kind, each.state, identifier=each.id)
        assert world.ec2.describe_addresses()["Addresses"] == []

    def test_key_pairs_come_and_go(self, world: World) -> None:
        pair, inputs = world.make(KEY_PAIR, {"publicKey": PUBLIC_KEY})
        assert pair.id == inputs["keyName"]
        assert pair.state["fingerprint"]
        assert world.replaces(KEY_PAIR, inputs, {**inputs, "publicKey": f"{PUBLIC_KEY}x"}) == ["publicKey"]
        world.provider.delete(KEY_PAIR, pair.state, identifier=pair.id)
        assert "id" not in world.refresh(KEY_PAIR, pair, inputs)


class TestNetworks:
    """A VPC of the program's own leads to the Internet, and goes without a trace."""

    def test_a_network_with_a_way_out_comes_and_goes(self, world: World, arguments: Json) -> None:
        vpc, _ = world.make(VPC, {"cidrBlock": "10.42.0.0/16", "enableDnsHostnames": True})
        assert vpc.state["defaultSecurityGroupId"].startswith("sg-")
        assert vpc.state["enableDnsHostnames"] is True
        subnet, _ = world.make(SUBNET, {"vpcId": vpc.id, "cidrBlock": "10.42.1.0/24", "mapPublicIpOnLaunch": True})
        gateway, _ = world.make(GATEWAY, {"vpcId": vpc.id})
        table, _ = world.make(ROUTE_TABLE, {"vpcId": vpc.id})
        route, _ = world.make(
            ROUTE, {"routeTableId": table.id, "destinationCidrBlock": "0.0.0.0/0", "gatewayId": gateway.id}
        )
        link, _ = world.make(TABLE_ASSOCIATION, {"routeTableId": table.id, "subnetId": subnet.id})
        instance, _ = world.make(INSTANCE, {**arguments, "subnetId": subnet.id})
        assert instance.state["privateIp"].startswith("10.42.1.")
        assert instance.state["publicIp"]
        everything: list[tuple[str, Created]] = [
            (INSTANCE, instance),
            (TABLE_ASSOCIATION, link),
            (ROUTE, route),
            (ROUTE_TABLE, table),
            (GATEWAY, gateway),
            (SUBNET, subnet),
            (VPC, vpc),
        ]
        for kind, each in everything[1:]:
            assert world.refresh(kind, each, {})["id"] == each.id, kind
        for kind, each in everything:
            world.provider.delete(kind, each.state, identifier=each.id)
            world.provider.delete(kind, each.state, identifier=each.id)
        assert vpc.id not in {each["VpcId"] for each in world.ec2.describe_vpcs()["Vpcs"]}
