"""The aws provider itself: its configuration, its functions, and what it says of itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.aws_fixtures import AMI, EIP, INSTANCE, World, start, variables
from tests.contract.command_harness import CallError, Json, Provider

StartAws = Callable[..., Provider]


@pytest.fixture
def start_aws(aws_plugin: Path, aws_endpoint: str) -> Generator[StartAws, None, None]:
    """Starts a plugin of the test's own: `start_aws(config, VARIABLE="value")`."""
    with ExitStack() as running:

        def begin(config: Json | None = None, **changed: str) -> Provider:
            provider = start(aws_plugin, {**variables(aws_endpoint), **changed}, config)
            running.callback(provider.close)
            return provider

        yield begin


class TestConfiguration:
    """A missing region or missing credentials are one clear message, before anything is asked for."""

    def test_a_whole_configuration_is_right(self, world: World) -> None:
        assert world.provider.check_config({"region": "us-east-1"}) == []

    def test_no_credentials(self, start_aws: StartAws) -> None:
        provider = start_aws(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME="/nonexistent")
        [reason] = provider.check_config({"region": "us-east-1"})
        assert "No valid credential sources found" in reason

    def test_no_region(self, start_aws: StartAws) -> None:
        [reason] = start_aws(AWS_REGION="").check_config({})
        assert reason.startswith("Missing region")
        assert "pulumi config set aws:region" in reason

    def test_an_unknown_profile_is_named(self, start_aws: StartAws) -> None:
        provider = start_aws(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        [reason] = provider.check_config({"region": "us-east-1", "profile": "nobody"})
        assert "nobody" in reason

    def test_another_region_replaces_and_a_profile_does_not(self, world: World) -> None:
        answer = world.provider.diff_config({"region": "us-east-1"}, {"region": "eu-west-1"})
        assert answer["replaces"] == ["region"]
        answer = world.provider.diff_config({"region": "us-east-1"}, {"region": "us-east-1", "profile": "p"})
        assert answer.get("replaces", []) == []

    def test_default_tags_are_on_everything_and_give_way_to_a_resources_own(self, start_aws: StartAws) -> None:
        provider = start_aws({"defaultTags": json.dumps({"tags": {"Stack": "s", "Name": "default"}})})
        inputs, _ = provider.check(EIP, {"tags": {"Name": "own"}})
        assert inputs["tags"] == {"Stack": "s", "Name": "own"}
        inputs, _ = provider.check(EIP, {})
        assert inputs["tags"] == {"Stack": "s", "Name": "default"}

    def test_a_region_of_a_resources_own(self, world: World) -> None:
        created, _ = world.make(EIP, {"region": "eu-west-1"})
        assert created.state["region"] == "eu-west-1"
        assert ":eu-west-1:" in created.state["arn"]
        world.provider.delete(EIP, created.state, identifier=created.id)

    def test_an_account_that_does_not_answer_is_named(self, start_aws: StartAws) -> None:
        provider = start_aws(AWS_ENDPOINT_URL="http://127.0.0.1:9")
        with pytest.raises(CallError, match="operation error EC2: AllocateAddress"):
            provider.create(EIP, {})


class TestFunctions:
    """What a program looks up."""

    def test_the_current_image_by_its_parameter(self, world: World) -> None:
        name = "/aws/service/debian/release/12/latest/amd64"
        found = world.provider.invoke("aws:ssm/getParameter:getParameter", {"name": name})["return"]
        assert found["value"] == AMI
        image = world.provider.invoke(
            "aws:ec2/getAmi:getAmi", {"filters": [{"name": "image-id", "values": [AMI]}], "owners": ["136693071363"]}
        )["return"]
        assert (image["id"], image["architecture"], image["rootDeviceName"]) == (AMI, "x86_64", "/dev/xvda")

    def test_a_parameter_that_is_not_there(self, world: World) -> None:
        with pytest.raises(CallError, match=r"reading SSM Parameter \(/nothing\): .* api error ParameterNotFound"):
            world.provider.invoke("aws:ssm/getParameter:getParameter", {"name": "/nothing"})

    def test_the_default_network_and_its_subnets(self, world: World) -> None:
        vpc = world.provider.invoke("aws:ec2/getVpc:getVpc", {"default": True})["return"]
        assert (vpc["cidrBlock"], vpc["default"]) == ("172.31.0.0/16", True)
        given = {"filters": [{"name": "vpc-id", "values": [vpc["id"]]}]}
        ids = world.provider.invoke("aws:ec2/getSubnets:getSubnets", given)["return"]["ids"]
        assert len(ids) > 1
        subnet = world.provider.invoke("aws:ec2/getSubnet:getSubnet", {"id": ids[0]})["return"]
        assert (subnet["vpcId"], subnet["mapPublicIpOnLaunch"]) == (vpc["id"], True)

    def test_what_an_instance_type_has(self, world: World) -> None:
        given = {"instanceType": "g6e.12xlarge"}
        found = world.provider.invoke("aws:ec2/getInstanceType:getInstanceType", given)["return"]
        assert [(each["count"], each["name"]) for each in found["gpuses"]] == [(4, "L40S")]
        assert found["supportedArchitectures"] == ["x86_64"]
        with pytest.raises(CallError, match=r"t3\.nothing"):
            world.provider.invoke("aws:ec2/getInstanceType:getInstanceType", {"instanceType": "t3.nothing"})

    def test_who_and_where(self, world: World) -> None:
        who = world.provider.invoke("aws:index/getCallerIdentity:getCallerIdentity", {})["return"]
        assert who["accountId"] == "123456789012"
        zones = world.provider.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", {"state": "available"})
        assert "us-east-1a" in zones["return"]["names"]
        assert world.provider.invoke("aws:index/getRegion:getRegion", {})["return"]["region"] == "us-east-1"


@pytest.mark.skipif("AWS_PLUGIN" in os.environ, reason="the original has nothing to say of itself")
class TestSubstitute:
    """The substitute says what it is, and what it can't do."""

    def test_it_says_what_it_is_when_it_is_used(self, world: World) -> None:
        world.provider.invoke("aws:index/getRegion:getRegion", {})
        assert "substitute for Pulumi's aws plugin" in world.provider.everything_logged

    def test_what_it_lacks_is_named(self, world: World) -> None:
        with pytest.raises(CallError, match="aws:s3/bucket:Bucket is no part of this substitute"):
            world.provider.check("aws:s3/bucket:Bucket", {})

    def test_without_an_endpoint_nothing_is_asked_of_amazon(self, start_aws: StartAws) -> None:
        provider = start_aws(AWS_ENDPOINT_URL="")
        [reason] = provider.check_config({"region": "us-east-1"})
        assert "never to Amazon" in reason

    def test_its_schema_names_what_it_has(self, world: World) -> None:
        schema = world.provider.schema()
        assert INSTANCE in schema["resources"]
        assert schema["version"] == "7.51.1"
