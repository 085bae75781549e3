"""The AWS world of a lab, driven by an AWS client alone: instances are hosts, security groups are enforced."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from lab import hosts, keys, world
from lab.aws_world import access
from lab.polling import wait_for
from lab.session import Session, name_for_tests, running

AMI = "ami-0debae12000000001"
BOOT_LIMIT_S = 60

pytestmark = [pytest.mark.root, pytest.mark.long]


@dataclass(frozen=True)
class Account:
    """The account, the lab it is in, and a key pair `lab` of it."""

    ec2: Any
    lab: Session
    key: Path

    def run(self, group: str, user_data: str = "") -> str:
        """Runs an instance; its id."""
        answer = self.ec2.run_instances(
            ImageId=AMI, InstanceType="t3.micro", KeyName="lab", MinCount=1, MaxCount=1, UserData=user_data,
            NetworkInterfaces=[{"DeviceIndex": 0, "AssociatePublicIpAddress": True, "Groups": [group]}],
        )  # fmt: skip
        return answer["Instances"][0]["InstanceId"]

    def address(self, instance: str) -> str:
        """The public address of an instance."""
        return self.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["PublicIpAddress"]

    def ssh(self, address: str, *command: str) -> Any:
        """Logs in as the operator; what came of it."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes",
                   "ConnectTimeout=2", f"IdentityFile={self.key}", "IdentitiesOnly=yes", "IdentityAgent=none",
                   "LogLevel=ERROR")  # fmt: skip
        flags = [part for option in options for part in ("-o", option)]
        return self.lab.run("ssh", *flags, f"admin@{address}", *command)

    def logged_in(self, address: str, *command: str) -> str:
        """What a command printed, as soon as a login works."""

        def login() -> str | None:
            done = self.ssh(address, *command)
            return done.stdout if done.returncode == 0 else None

        said = wait_for(login, BOOT_LIMIT_S)
        assert said is not None, self.ssh(address, *command).stderr
        return said

    def answers(self, address: str, port: int) -> bool:
        """Whether the operator's connection is accepted."""
        command = ["timeout", "2", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"]
        return self.lab.run(*command).returncode == 0

    def allow(self, group: str, port: int, cidr: str = "203.0.113.0/24") -> None:
        """Lets a port in."""
        ranges = [{"CidrIp": cidr}]
        permission = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": ranges}
        self.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Generator[Account, None, None]:
    """An account in a lab of its own."""
    if os.geteuid() != 0:
        pytest.fail("tests/lab boot real hosts and need root")
    key = tmp_path_factory.mktemp("key") / "key"
    keys.create(key, "ed25519", "test")
    with running(name_for_tests("-ec2"), edges=1, aws=True) as lab, access.endpoint(lab.name) as url:
        session: Any = botocore.session.Session()
        session.set_credentials("test", "test")
        ec2 = session.create_client("ec2", region_name="us-east-1", endpoint_url=url)
        ec2.import_key_pair(KeyName="lab", PublicKeyMaterial=key.with_suffix(".pub").read_bytes())
        yield Account(ec2, lab, key)


def test_an_instance_is_a_host_behind_its_groups_from_its_first_to_its_last_moment(account: Account) -> None:
    group = account.ec2.create_security_group(GroupName="one", Description="one")["GroupId"]
    account.allow(group, 22)
    data = {"write_files": [{"path": "/etc/made-by-user-data", "content": "yes"}]}
    instance = account.run(group, f"#cloud-config\n{json.dumps(data)}\n")
    address = account.address(instance)
    assert account.logged_in(address, "id -un; sudo -n id -un").split() == ["admin", "root"]
    said = account.logged_in(address, "cloud-init status --wait >&2; cat /etc/made-by-user-data; hostname")
    assert said.startswith("yes")
    assert "ip-172-31-" in said

    started = account.ssh(address, "sudo systemd-run --collect python3 -m http.server 8080")
    assert started.returncode == 0, started.stderr
    assert account.ssh(address, "timeout 5 sh -c 'until curl -sf http://127.0.0.1:8080/; do :; done'").returncode == 0
    assert not account.answers(address, 8080)
    account.allow(group, 8080)
    assert wait_for(lambda: account.answers(address, 8080) or None, 10)
    # From behind NAT, too, and the instance sees who asks.
    seen = account.lab.exec("edge-1", "curl", "-sf", "-m", "5", f"http://{address}:8080/")
    assert seen.returncode == 0

    account.ec2.stop_instances(InstanceIds=[instance])
    assert wait_for(lambda: True if hosts.leader(account.lab.name, instance) is None else None, 20)
    account.ec2.start_instances(InstanceIds=[instance])
    assert account.logged_in(account.address(instance), "cat /etc/made-by-user-data") == "yes"

    account.ec2.terminate_instances(InstanceIds=[instance])
    folder = account.lab.lab.files.host(instance)
    assert wait_for(lambda: True if not folder.exists() else None, 20)
    assert hosts.leader(account.lab.name, instance) is None
    assert not [line for line in world.remains(account.lab.lab) if instance in line]
