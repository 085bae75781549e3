"""The policy pack under Pulumi's own engine: over the program's instances on AWS, and over what breaks its rules."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from components.plan import RayPorts
from lab.aws_plugin import SUBSTITUTE
from lab.paths import CLONE
from policy.rules import RAY_PORTS, RULES, Ports
from tests.contract import aws_fixtures, command_stack
from tests.contract.aws_program_stack import TARGETS, Account

pytestmark = pytest.mark.slow

PACK = str(CLONE / "policy" / "pack")
BREACHES = Path(__file__).parent / "programs" / "policy_breaches.py"


def told_by(rule: str, told: str) -> set[str]:
    """The resources that a rule has something against."""
    return set(re.findall(rf"\[mandatory\]  {rule}  \([\w:]+: ([\w.-]+)\)", told))


def test_the_programs_instances_break_no_rule(aws_stack: Account) -> None:
    aws_stack.write()
    code, told = aws_stack.pulumi("preview", "--policy-pack", PACK, *TARGETS)
    assert code == 0, told
    assert "✅ rlinf-cloud-edge@v0.1.0" in told
    assert "can't be known during preview" not in told


@pytest.mark.long
def test_open_ssh_is_told_unless_the_pack_is_told_that_it_is_wanted(aws_stack: Account, tmp_path: Path) -> None:
    aws_stack.raw["aws"]["ssh_from"] = "anywhere"
    aws_stack.write()
    code, told = aws_stack.pulumi("preview", "--policy-pack", PACK, *TARGETS)
    assert code != 0
    hosts = {f"{host}-ssh-tcp-0.0.0.0-0" for host in ("bootstrap", "cloud-1")}
    assert {rule.name: told_by(rule.name, told) for rule in RULES if told_by(rule.name, told)} == {"no-open-ssh": hosts}
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps({"no-open-ssh": {"sshFromAnywhere": True}}))
    code, told = aws_stack.pulumi("preview", "--policy-pack", PACK, "--policy-pack-config", str(asked), *TARGETS)
    assert code == 0, told


def test_each_rule_finds_what_breaks_it(
    aws_plugin: Path, aws_endpoint: str, bin_dirs: list[Path], tmp_path: Path
) -> None:
    home, folder = tmp_path / "home", tmp_path / "program"
    folder.mkdir()
    command_stack.install(aws_plugin, bin_dirs, home, SUBSTITUTE.name, SUBSTITUTE.version)
    stack = command_stack.Stack.create(folder, bin_dirs, home, BREACHES, aws_fixtures.variables(aws_endpoint))
    told = stack.pulumi("preview", "--policy-pack", PACK, fails=True)
    assert {rule.name: told_by(rule.name, told) for rule in RULES} == {
        "no-port-of-ray": {"ray"},
        "no-other-port": {"ray", "web"},
        "no-open-ssh": {"ssh"},
        "encrypted-volumes": {"bare"},
        "imdsv2": {"bare"},
        "tags": {"bare"},
        "spot-once": {"bare"},
    }


def test_it_knows_the_ports_that_the_program_gives_ray() -> None:
    ports = RayPorts(gcs=Ports().gcs)
    closed = {*(port for each in RAY_PORTS for port in each), Ports().gcs}
    assert {*ports.fixed, *range(ports.first_worker, ports.last_worker + 1), *range(23000, 24000)} <= closed
