"""What AWS refuses of the program's instances: one clear error each, and the next update goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.aws_fixtures import quota
from tests.contract.aws_program_stack import Account, guide_in_a_vpc

pytestmark = pytest.mark.slow

NO_CREDENTIALS = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
EACH = 2
"""How often Pulumi prints an error: as it happens, and at the end."""


def wrong_type(raw: dict[str, Any]) -> None:
    raw["cloud"][0]["aws"]["instance_type"] = "g6e.13xlarge"


def wrong_ami(raw: dict[str, Any]) -> None:
    raw["cloud"][0] |= {"ssh": {"user": "ubuntu"}}
    raw["cloud"][0]["aws"]["ami"] = "ami-00000000000000000"


def wrong_subnet(raw: dict[str, Any]) -> None:
    del raw["aws"]["vpc"]
    raw["cloud"][0]["aws"]["subnet_id"] = "subnet-00000000000000000"


def both_run(stack: Account) -> bool:
    """Whether the account has the cluster's two instances."""
    return set(stack.instances()) == {"bootstrap", "cloud-1"}


class TestWhatAwsRefuses:
    """One clear error each, before anything is created where that can be known, and the next update goes on."""

    @pytest.mark.parametrize(
        ("spoil", "key"),
        [
            pytest.param(wrong_type, "instance_type: g6e.13xlarge", id="type"),
            pytest.param(wrong_ami, "ami: ami-00000000000000000", id="image", marks=pytest.mark.long),
            pytest.param(wrong_subnet, "subnet_id: subnet-00000000000000000", id="subnet", marks=pytest.mark.long),
        ],
    )
    def test_what_does_not_exist_is_named_and_nothing_is_created(
        self, aws_stack: Account, spoil: Callable[[dict[str, Any]], None], key: str
    ) -> None:
        before = aws_stack.left()
        spoil(aws_stack.raw)
        for told in (aws_stack.refused(), aws_stack.refused_up()):
            assert "the settings have one fault; nothing was changed." in told
            assert f"cluster.cloud[0].aws.{key}" in told
        assert aws_stack.left() == before
        aws_stack.raw = guide_in_a_vpc()
        aws_stack.up()
        assert both_run(aws_stack)

    @pytest.mark.parametrize(
        ("missing", "word"),
        [
            pytest.param(NO_CREDENTIALS, "No valid credential sources found", id="credentials"),
            pytest.param({"AWS_REGION": None}, "pulumi config set aws:region", id="region", marks=pytest.mark.long),
        ],
    )
    def test_without_credentials_or_region_it_says_what_to_do(
        self, aws_stack: Account, missing: dict[str, str | None], word: str
    ) -> None:
        for told in (aws_stack.refused(variables=missing), aws_stack.refused_up(variables=missing)):
            assert word in told
        aws_stack.up()
        assert both_run(aws_stack)

    def test_instances_beyond_the_quota_are_explained_and_the_next_update_goes_on(self, aws_stack: Account) -> None:
        aws_stack.destroy()
        with quota(aws_stack.endpoint, "L-DB2E81BA", 40):  # a g6e.12xlarge has 48
            told = aws_stack.refused_up()
            rule = "the account's quota does not allow this instance beside those it has. Ask for more at https://"
            assert told.count(f"cluster.cloud[0].aws.instance_type: {rule}") == EACH
            assert "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 40" in told
            before = aws_stack.instances()
            assert set(before) == {"bootstrap"}
        aws_stack.up()
        assert both_run(aws_stack)
        assert aws_stack.instances()["bootstrap"][0] == before["bootstrap"][0]

    @pytest.mark.long
    def test_an_instance_that_ends_as_it_is_launched_is_not_forgotten(self, aws_stack: Account) -> None:
        aws_stack.destroy()
        aws_stack.raw["cloud"][0]["aws"]["root_volume"] = {"kms_key_id": "alias/not-there"}
        told = aws_stack.refused_up()
        assert "cluster.cloud[0].aws.root_volume.kms_key_id: AWS has ended the instance as it was launched" in told
        assert "Client.InternalError: Client error on launch" in told
        assert "i-" in aws_stack.recorded("cloud-1-instance")["id"]
        aws_stack.raw = guide_in_a_vpc()
        assert "then run pulumi up --refresh" in aws_stack.refused_up()
        aws_stack.up("--refresh")
        assert both_run(aws_stack)

    @pytest.mark.long
    def test_a_change_that_is_refused_is_explained_and_made_once_aws_is_asked_again(self, aws_stack: Account) -> None:
        aws_stack.raw["cloud"][0]["aws"]["root_volume"] = {"size": 200}
        aws_stack.up()
        aws_stack.raw["cloud"][0]["aws"]["root_volume"] = {"size": 100}
        told = aws_stack.refused_up()
        assert "cluster.cloud[0].aws.root_volume.size: AWS makes no volume smaller" in told
        assert "then run pulumi up --refresh, since a plain up does not ask AWS" in told
        # The provider has recorded it as made.
        assert aws_stack.recorded("cloud-1-instance")["outputs"]["rootBlockDevice"]["volumeSize"] == 100
        aws_stack.raw["cloud"][0]["aws"]["root_volume"] = {"size": 300}
        aws_stack.up("--refresh")
        assert aws_stack.recorded("cloud-1-instance")["outputs"]["rootBlockDevice"]["volumeSize"] == 300
        sizes = {each["Size"] for each in aws_stack.left()["volumes"]}
        assert 300 in sizes
        assert 100 not in sizes

    @pytest.mark.long
    def test_a_quota_of_addresses_that_is_used_up_is_explained_and_the_next_update_goes_on(
        self, aws_stack: Account
    ) -> None:
        aws_stack.destroy()
        taken = [aws_stack.ec2.allocate_address(Domain="vpc")["AllocationId"] for _ in range(free(aws_stack) - 1)]
        told = aws_stack.refused_up()
        assert "the account's quota of elastic IPs is used up" in told
        assert "then run pulumi up again" in told
        for allocation in taken:
            aws_stack.ec2.release_address(AllocationId=allocation)
        aws_stack.up()
        assert both_run(aws_stack)


def free(stack: Account) -> int:
    """How many addresses the account may still give away."""
    taken: list[str] = []
    while True:
        try:
            taken.append(stack.ec2.allocate_address(Domain="vpc")["AllocationId"])
        except stack.ec2.exceptions.ClientError:
            break
    for allocation in taken:
        stack.ec2.release_address(AllocationId=allocation)
    return len(taken)
