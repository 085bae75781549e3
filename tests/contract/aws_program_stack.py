"""The program as a stack in an account of moto's: what the tests of its instances share.

No machine boots here, so what runs on hosts is left out; `tests/lab/test_aws.py` is for that.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.aws_plugin import SUBSTITUTE
from lab.stack import copy_program
from tests.contract import aws_fixtures, command_stack
from tests.program.aws_account import guide_on_aws

_SECRET = "canary-network-secret-of-the-contract"
TARGETS = [f"--target=**{kind}**" for kind in ("Ec2Machine", "login-key", "rlinf:cloudedge:Network")]


@dataclass
class Account:
    """The program as a stack of its own, and the account that it works in."""

    folder: Path
    environment: dict[str, str]
    endpoint: str
    raw: dict[str, Any] = field(default_factory=guide_on_aws)

    @cached_property
    def ec2(self) -> Any:
        """A client of the account."""
        return aws_fixtures.client("ec2", self.endpoint)

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
        done = command_stack.run(self.folder, environment, *argv, stdin=stdin)
        return done.returncode, done.stdout + done.stderr

    def up(self, *argv: str) -> str:
        """Creates and changes what is on AWS, and nothing on hosts."""
        self.write()
        code, told = self.pulumi("up", "--yes", "--skip-preview", *argv, *TARGETS)
        assert code == 0, told
        return told

    def refused(self, *argv: str, variables: Mapping[str, str | None] | None = None) -> str:
        """What a command says that must fail; a preview, unless another is given."""
        self.write()
        code, told = self.pulumi(*(argv or ("preview",)), variables=variables)
        assert code != 0, told
        assert "Traceback" not in told
        return told

    def refused_up(self, variables: Mapping[str, str | None] | None = None) -> str:
        """What `pulumi up` says that must fail."""
        return self.refused("up", "--yes", "--skip-preview", *TARGETS, variables=variables)

    def destroy(self) -> None:
        """`pulumi destroy`."""
        code, told = self.pulumi("destroy", "--yes", "--skip-preview")
        assert code == 0, told

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

    def recorded(self, name: str) -> dict[str, Any]:
        """What the stack's state has of a resource."""
        code, exported = self.pulumi("stack", "export")
        assert code == 0, exported
        resources: list[dict[str, Any]] = json.loads(exported)["deployment"]["resources"]
        return next(each for each in resources if each["urn"].endswith(f"::{name}"))

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


def guide_in_a_vpc() -> dict[str, Any]:
    """The settings of the guide's cluster on AWS, in a VPC of its own."""
    raw = guide_on_aws()
    raw["aws"]["vpc"] = {}
    return raw


@pytest.fixture(scope="module")
def aws_program(
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
    made = Account(folder, environment, aws_endpoint)
    assert made.pulumi("stack", "init", "contract")[0] == 0
    assert made.pulumi("config", "set", "--secret", "networkSecret", stdin=_SECRET)[0] == 0
    yield made
    made.pulumi("destroy", "--yes", "--skip-preview")


@pytest.fixture
def aws_stack(aws_program: Account) -> Account:
    """The stack with the settings of the guide's cluster on AWS, in a VPC of its own."""
    aws_program.raw = guide_in_a_vpc()
    return aws_program
