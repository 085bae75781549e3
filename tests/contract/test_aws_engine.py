"""The aws plugin under Pulumi's own engine and SDK."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from lab.aws_plugin import SUBSTITUTE
from lab.paths import Cache
from lab.toolchain import pulumi_cli
from tests.contract import command_stack
from tests.contract.aws_fixtures import PUBLIC_KEY, client, variables
from tests.contract.command_stack import Stack

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "aws_program.py"
USER_DATA = base64.b64encode(b"#cloud-config\n{}").decode()
SETTINGS = {"public_key": PUBLIC_KEY, "instance_type": "t3.micro", "user_data": USER_DATA}


def there(ec2: Any) -> set[str]:
    """What there is in the account that costs something or stands in the way."""
    return {
        *(each["AllocationId"] for each in ec2.describe_addresses()["Addresses"]),
        *(each["KeyPairId"] for each in ec2.describe_key_pairs()["KeyPairs"]),
        *(each["GroupId"] for each in ec2.describe_security_groups()["SecurityGroups"]),
        *(
            each["InstanceId"]
            for reservation in ec2.describe_instances()["Reservations"]
            for each in reservation["Instances"]
            if each["State"]["Name"] != "terminated"
        ),
    }


@pytest.fixture
def stack(aws_plugin: Path, aws_endpoint: str, tmp_path: Path) -> Stack:
    """The program's stack, not up yet."""
    bin_dirs = list(pulumi_cli.ensure(Cache.from_environment()).bin_dirs)
    home, folder = tmp_path / "home", tmp_path / "program"
    folder.mkdir()
    command_stack.install(aws_plugin, bin_dirs, home, SUBSTITUTE.name, SUBSTITUTE.version)
    stack = Stack.create(folder, bin_dirs, home, PROGRAM, variables(aws_endpoint))
    stack.write(SETTINGS)
    return stack


def instance(ec2: Any, identifier: str) -> Any:
    """An instance as the account has it."""
    return ec2.describe_instances(InstanceIds=[identifier])["Reservations"][0]["Instances"][0]


def test_a_stack_comes_up_keeps_its_secrets_and_leaves_nothing(stack: Stack, aws_endpoint: str) -> None:
    ec2 = client("ec2", aws_endpoint)
    before = there(ec2)
    stack.up()
    outputs = stack.outputs()
    assert instance(ec2, outputs["instance"])["PublicIpAddress"] == outputs["address"]
    assert USER_DATA not in stack.exported()
    stack.destroy()
    assert there(ec2) == before


@pytest.mark.long
def test_a_stack_changes_in_place_notices_a_loss_and_goes_without_its_instances(
    stack: Stack, aws_endpoint: str
) -> None:
    ec2 = client("ec2", aws_endpoint)
    before = there(ec2)
    stack.up()
    outputs = stack.outputs()
    assert stack.preview().keys() == {"same"}

    stack.write({**SETTINGS, "instance_type": "t3.large"})
    stack.up()
    assert stack.outputs() == outputs
    assert instance(ec2, outputs["instance"])["InstanceType"] == "t3.large"

    ec2.terminate_instances(InstanceIds=[outputs["instance"]])
    stack.pulumi("refresh", "--yes", "--skip-preview")
    stack.up()
    again = stack.outputs()
    assert again["instance"] != outputs["instance"]
    assert again["address"] == outputs["address"]

    ec2.terminate_instances(InstanceIds=[again["instance"]])
    stack.destroy()
    assert there(ec2) == before
