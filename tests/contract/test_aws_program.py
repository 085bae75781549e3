"""The program's own instances under Pulumi's engine and the aws plugin, in an account of moto's.

No machine boots here, so what runs on hosts is left out; `tests/lab/test_aws.py` is for that.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.aws_plugin import SUBSTITUTE
from lab.stack import copy_program
from tests.contract import aws_fixtures, command_stack
from tests.program.aws_account import guide_on_aws

pytestmark = pytest.mark.slow

_SECRET = "canary-network-secret-of-the-contract"
_TARGETS = [f"--target=**{kind}**" for kind in ("Ec2Machine", "login-key", "rlinf:cloudedge:Network")]


@dataclass
class Account:
    """The program as a stack of its own, and the account that it works in."""

    folder: Path
    environment: dict[str, str]
    ec2: Any
    raw: dict[str, Any] = field(default_factory=guide_on_aws)

    def write(self) -> None:
        """The settings as they are now."""
        file = self.folder / "config" / "Pulumi.contract.yaml"
        document = yaml.safe_load(file.read_text()) if file.exists() else {"config": {}}
        document["config"]["rlinf-cloud-edge:cluster"] = self.raw
        file.write_text(yaml.safe_dump(document))

    def pulumi(self, *argv: str, stdin: str = "", variables: Mapping[str, str | None] | None = None) -> tuple[int, str]:
        """Exit code of a command and what it printed; a variable that is None is left out of its environment."""
        environment = {
            name: value for name, value in {**self.environment, **(variables or {})}.items() if value is not None
        }
        done = subprocess.run(
            ["pulumi", *argv, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def up(self) -> str:
        """Creates and changes what is on AWS, and nothing on hosts."""
        self.write()
        code, told = self.pulumi("up", "--yes", "--skip-preview", *_TARGETS)
        assert code == 0, told
        return told

    def refused(self, variables: Mapping[str, str | None] | None = None) -> str:
        """What a preview says that must fail."""
        self.write()
        code, told = self.pulumi("preview", variables=variables)
        assert code != 0, told
        return told

    def instances(self) -> dict[str, tuple[str, str, str]]:
        """Host to id, type and public address of the instances that run."""
        found: dict[str, tuple[str, str, str]] = {}
        for reservation in self.ec2.describe_instances()["Reservations"]:
            for each in reservation["Instances"]:
                name = next((tag["Value"] for tag in each.get("Tags", []) if tag["Key"] == "Name"), "")
                if each["State"]["Name"] == "running" and name.startswith("contract-"):
                    id_ = each["InstanceId"]
                    found[name.removeprefix("contract-")] = (id_, each["InstanceType"], each["PublicIpAddress"])
        return found

    def left(self) -> dict[str, list[Any]]:
        """Everything in the account that carries our tags, or would cost money."""
        ours = [{"Name": "tag:rlinf-cloud-edge:stack", "Values": ["contract"]}]
        return {
            "instances": list(self.instances()),
            "volumes": self.ec2.describe_volumes(Filters=ours)["Volumes"],
            "addresses": self.ec2.describe_addresses(Filters=ours)["Addresses"],
            "groups": self.ec2.describe_security_groups(Filters=ours)["SecurityGroups"],
            "vpcs": self.ec2.describe_vpcs(Filters=ours)["Vpcs"],
            "subnets": self.ec2.describe_subnets(Filters=ours)["Subnets"],
            "gateways": self.ec2.describe_internet_gateways(Filters=ours)["InternetGateways"],
            "key pairs": self.ec2.describe_key_pairs(Filters=ours)["KeyPairs"],
        }


NOTHING: dict[str, list[Any]] = {
    kind: [] for kind in ("instances", "volumes", "addresses", "groups", "vpcs", "subnets", "gateways", "key pairs")
}


@pytest.fixture(scope="module")
def account(
    aws_plugin: Path,
    aws_endpoint: str,
    command_plugin: Path,
    bin_dirs: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Account, None, None]:
    """A stack without anything yet."""
    folder, home = tmp_path_factory.mktemp("program"), tmp_path_factory.mktemp("home")
    command_stack.install(command_plugin, bin_dirs, home)
    command_stack.install(aws_plugin, bin_dirs, home, SUBSTITUTE.name, SUBSTITUTE.version)
    environment = command_stack.environment(bin_dirs, home, folder) | aws_fixtures.variables(aws_endpoint)
    copy_program(folder)
    (folder / "backend").mkdir()
    made = Account(folder, environment, aws_fixtures.client("ec2", aws_endpoint))
    assert made.pulumi("stack", "init", "contract")[0] == 0
    assert made.pulumi("config", "set", "--secret", "networkSecret", stdin=_SECRET)[0] == 0
    yield made
    made.pulumi("destroy", "--yes", "--skip-preview")


@pytest.fixture
def stack(account: Account) -> Account:
    """The stack with the settings of the guide's cluster on AWS, in a VPC of its own."""
    account.raw = guide_on_aws()
    account.raw["aws"]["vpc"] = {}
    return account


class TestTheLifeOfTheInstances:
    """From nothing to instances and back to nothing, and in between nothing that nobody asked for."""

    @pytest.mark.long
    def test_another_type_is_another_instance_at_the_same_address_and_touches_no_other(self, stack: Account) -> None:
        stack.up()
        before = stack.instances()
        assert {name: each[1] for name, each in before.items()} == {"bootstrap": "t3.small", "cloud-1": "g6e.12xlarge"}
        assert "unchanged" in stack.up()
        assert stack.instances() == before
        stack.raw["cloud"][0]["aws"]["instance_type"] = "g6e.48xlarge"
        stack.up()
        after = stack.instances()
        assert after["bootstrap"] == before["bootstrap"]
        assert after["cloud-1"][1:] == ("g6e.48xlarge", before["cloud-1"][2])
        assert after["cloud-1"][0] != before["cloud-1"][0]

    def test_the_private_host_keys_are_in_the_state_and_only_encrypted(self, stack: Account) -> None:
        stack.up()
        code, exported = stack.pulumi("stack", "export")
        assert code == 0
        resources = json.loads(exported)["deployment"]["resources"]
        assert sum(each["type"].endswith(":HostKey") for each in resources) == 2
        assert "PRIVATE KEY" not in exported
        for each in resources:
            if each["type"] == aws_fixtures.INSTANCE:
                assert "ciphertext" in each["inputs"]["userDataBase64"]

    @pytest.mark.parametrize("dead", [False, True], ids=["alive", "terminated by somebody else"])
    def test_destroy_leaves_nothing_in_the_account(self, stack: Account, dead: bool) -> None:
        stack.up()
        assert stack.left()["volumes"]
        if dead:
            stack.ec2.terminate_instances(InstanceIds=[each[0] for each in stack.instances().values()])
        began = time.monotonic()
        code, told = stack.pulumi("destroy", "--yes", "--skip-preview")
        assert code == 0, told
        assert time.monotonic() - began < 120
        assert stack.left() == NOTHING


def wrong_type(raw: dict[str, Any]) -> None:
    raw["cloud"][0]["aws"]["instance_type"] = "g6e.13xlarge"


def wrong_ami(raw: dict[str, Any]) -> None:
    raw["cloud"][0] |= {"ssh": {"user": "ubuntu"}}
    raw["cloud"][0]["aws"]["ami"] = "ami-00000000000000000"


def wrong_subnet(raw: dict[str, Any]) -> None:
    del raw["aws"]["vpc"]
    raw["cloud"][0]["aws"]["subnet_id"] = "subnet-00000000000000000"


class TestWhatAwsRefuses:
    """One clear error each, and the next update continues."""

    @pytest.mark.parametrize(
        ("spoil", "key"),
        [
            (wrong_type, "cluster.cloud[0].aws.instance_type: g6e.13xlarge"),
            (wrong_ami, "cluster.cloud[0].aws.ami: ami-00000000000000000"),
            (wrong_subnet, "cluster.cloud[0].aws.subnet_id: subnet-00000000000000000"),
        ],
        ids=["type", "image", "subnet"],
    )
    def test_what_does_not_exist_is_named_in_the_preview(
        self, stack: Account, spoil: Callable[[dict[str, Any]], None], key: str
    ) -> None:
        spoil(stack.raw)
        told = stack.refused()
        assert "the settings have one fault; nothing was changed." in told
        assert key in told
        assert "Traceback" not in told

    @pytest.mark.parametrize(
        ("missing", "word"),
        [
            ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "No valid credential sources found"),
            ({"AWS_REGION": None}, "pulumi config set aws:region"),
        ],
        ids=["credentials", "region"],
    )
    def test_without_credentials_or_region_it_says_what_to_do(
        self, stack: Account, missing: dict[str, str | None], word: str
    ) -> None:
        told = stack.refused(missing)
        assert word in told
        assert "Traceback" not in told

    def test_a_quota_that_is_used_up_is_explained_and_the_next_update_goes_on(self, stack: Account) -> None:
        assert stack.pulumi("destroy", "--yes", "--skip-preview")[0] == 0
        taken = [stack.ec2.allocate_address(Domain="vpc")["AllocationId"] for _ in range(self.free(stack) - 1)]
        stack.write()
        code, told = stack.pulumi("up", "--yes", "--skip-preview", *_TARGETS)
        assert code != 0
        assert "the account's quota of elastic IPs is used up" in told
        assert "then run pulumi up again" in told
        for allocation in taken:
            stack.ec2.release_address(AllocationId=allocation)
        stack.up()
        assert set(stack.instances()) == {"bootstrap", "cloud-1"}

    @staticmethod
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
