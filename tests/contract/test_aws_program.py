"""The program's own instances under Pulumi's engine and the aws plugin, in an account of moto's."""

from __future__ import annotations

import json
import time

import pytest

from tests.contract import aws_fixtures
from tests.contract.aws_program_stack import NOTHING, Account

pytestmark = pytest.mark.slow


class TestTheLifeOfTheInstances:
    """From nothing to instances and back to nothing, and in between nothing that nobody asked for."""

    @pytest.mark.long
    def test_another_type_is_another_instance_at_the_same_address_and_touches_no_other(
        self, aws_stack: Account
    ) -> None:
        aws_stack.up()
        before = aws_stack.instances()
        assert {name: each[1] for name, each in before.items()} == {"bootstrap": "t3.small", "cloud-1": "g6e.12xlarge"}
        assert "unchanged" in aws_stack.up()
        assert aws_stack.instances() == before
        aws_stack.raw["cloud"][0]["aws"]["instance_type"] = "g6e.48xlarge"
        aws_stack.up()
        after = aws_stack.instances()
        assert after["bootstrap"] == before["bootstrap"]
        assert after["cloud-1"][1:] == ("g6e.48xlarge", before["cloud-1"][2])
        assert after["cloud-1"][0] != before["cloud-1"][0]

    def test_the_private_host_keys_are_in_the_state_and_only_encrypted(self, aws_stack: Account) -> None:
        aws_stack.up()
        code, exported = aws_stack.pulumi("stack", "export")
        assert code == 0
        resources = json.loads(exported)["deployment"]["resources"]
        assert sum(each["type"].endswith(":HostKey") for each in resources) == 2
        assert "PRIVATE KEY" not in exported
        for each in resources:
            if each["type"] == aws_fixtures.INSTANCE:
                assert "ciphertext" in each["inputs"]["userDataBase64"]

    @pytest.mark.parametrize("dead", [False, True], ids=["alive", "terminated by somebody else"])
    def test_destroy_leaves_nothing_in_the_account(self, aws_stack: Account, dead: bool) -> None:
        aws_stack.up()
        assert aws_stack.left()["volumes"]
        if dead:
            aws_stack.ec2.terminate_instances(InstanceIds=[each[0] for each in aws_stack.instances().values()])
        began = time.monotonic()
        code, told = aws_stack.pulumi("destroy", "--yes", "--skip-preview")
        assert code == 0, told
        assert time.monotonic() - began < 120
        assert aws_stack.left() == NOTHING
