"""Fixtures of the aws contract: the plugin under test, and an account of moto's to try it on.

The plugin is the folder that `AWS_PLUGIN` names, or the substitute built here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from lab.aws_plugin import SUBSTITUTE
from lab.paths import CLONE, Cache
from lab.toolchain import provider_plugin
from tests.contract.command_harness import Created, Json, Provider, eventually

AMI = "ami-0debae12000000001"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl contract"
INSTANCE = "aws:ec2/instance:Instance"
KEY_PAIR = "aws:ec2/keyPair:KeyPair"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
EIP = "aws:ec2/eip:Eip"
EIP_ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
GATEWAY = "aws:ec2/internetGateway:InternetGateway"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
TABLE_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"


@dataclass(frozen=True)
class World:
    """A running plugin and the account behind it."""

    provider: Provider
    ec2: Any

    def make(self, kind: str, inputs: Json, name: str = "x") -> tuple[Created, Json]:
        """Checks and creates a resource; it and its checked inputs."""
        checked, failures = self.provider.check(kind, inputs)
        assert not failures, failures
        return self.provider.create(kind, checked, name=name), checked

    def replaces(self, kind: str, old: Json, new: Json) -> list[str]:
        """The properties whose change replaces the resource."""
        return self.provider.diff(kind, old, new).get("replaces", [])

    def change(self, kind: str, created: Created, inputs: Json) -> Created:
        """Checks and updates a resource."""
        checked, failures = self.provider.check(kind, inputs)
        assert not failures, failures
        state = self.provider.update(kind, created.state, checked, identifier=created.id)
        return Created(created.id, state)

    def refresh(self, kind: str, created: Created, inputs: Json) -> Json:
        """What a refresh finds: an answer without an id where the resource is gone."""
        return self.provider.read(kind, created.state, inputs, identifier=created.id)

    def instance(self, identifier: str) -> Json:
        """An instance as the account has it."""
        return self.ec2.describe_instances(InstanceIds=[identifier])["Reservations"][0]["Instances"][0]


def variables(endpoint: str) -> dict[str, str]:
    """The environment of a plugin that speaks to this account."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "contract",
        "AWS_SECRET_ACCESS_KEY": "contract",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }


def client(service: str, endpoint: str) -> Any:
    """A client of the account, of the test's own."""
    session = botocore.session.Session()
    session.set_credentials("test", "test")
    return session.create_client(
        service,
        region_name="us-east-1",
        endpoint_url=endpoint,
    )


@contextmanager
def quota(endpoint: str, code: str, vcpus: int) -> Generator[None, None, None]:
    """Has the account allow so many vCPUs of a kind of instance, named by its quota, for the length of a block."""
    quotas = client("service-quotas", endpoint)
    before = quotas.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"]

    def ask(value: float) -> None:
        quotas.request_service_quota_increase(ServiceCode="ec2", QuotaCode=code, DesiredValue=value)

    ask(vcpus)
    try:
        yield
    finally:
        ask(before)


def start(plugin: Path, environment: Mapping[str, str], config: Json | None = None) -> Provider:
    """Starts the plugin."""
    return Provider.start(plugin, environment, executable=SUBSTITUTE.executable, config=config)


@pytest.fixture(scope="session")
def aws_plugin() -> Path:
    """The folder of the plugin under test."""
    return provider_plugin.under_test(os.environ, Cache.from_environment(), SUBSTITUTE)


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """Where the account answers."""
    log = tmp_path_factory.mktemp("account") / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.aws_account"],
            cwd=CLONE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    assert port.isdigit(), log.read_text()
    endpoint = f"http://127.0.0.1:{port}"
    eventually(lambda: client("sts", endpoint).get_caller_identity() or None, "the account answers")
    yield endpoint
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def world(aws_plugin: Path, aws_endpoint: str) -> Generator[World, None, None]:
    """A running plugin and its account, shared by a module's tests."""
    provider = start(aws_plugin, variables(aws_endpoint))
    yield World(provider, client("ec2", aws_endpoint))
    provider.close()
