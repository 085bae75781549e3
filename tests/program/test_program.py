"""What the program asks Pulumi for: the resources, their order, and where secrets go."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from components.token import ray_token
from config.load import Refused
from tests.example_settings import guide, guide_with_edges
from tests.program.harness import SECRET, plain, run_program, settings_of


def test_every_host_gets_its_component_and_its_commands() -> None:
    resources = run_program(guide()).resources
    assert {name: args.typ for name, args in resources.items() if args.typ.startswith("rlinf:")} == {
        "bootstrap": "rlinf:cloudedge:BootstrapVm",
        "cloud-1": "rlinf:cloudedge:CloudNode",
        "edge-1": "rlinf:cloudedge:EdgeHost",
    }
    assert sorted(name for name, args in resources.items() if args.typ == "command:remote:Command") == [
        "bootstrap-check",
        "bootstrap-overlay",
        "bootstrap-prepare",
        "cloud-1-check",
        "cloud-1-gate",
        "cloud-1-overlay",
        "cloud-1-prepare",
        "cloud-1-ray",
        "edge-1-check",
        "edge-1-overlay",
        "edge-1-prepare",
        "edge-1-ray",
    ]


def test_an_edge_adds_four_commands_and_nothing_to_other_hosts_but_the_gate() -> None:
    before, after = run_program(guide_with_edges(1)).commands, run_program(guide_with_edges(2)).commands
    assert sorted(set(after) - set(before)) == ["edge-2-check", "edge-2-overlay", "edge-2-prepare", "edge-2-ray"]
    assert [name for name in before if before[name] != after[name]] == ["cloud-1-gate"]


def test_no_secret_is_in_a_command_line_or_in_plain_text() -> None:
    commands = run_program(guide()).commands
    for name, inputs in commands.items():
        for key, value in inputs.items():
            if key != "stdin":
                assert SECRET not in str(value), (name, key)
    for name in ("bootstrap-overlay", "edge-1-overlay", "edge-1-ray", "cloud-1-gate"):
        assert isinstance(commands[name]["stdin"], dict), f"{name} gets its settings in plain text"


def test_ray_gets_a_token_derived_from_the_secret_and_not_the_secret() -> None:
    settings = settings_of(run_program(guide()).commands["edge-1-ray"])
    assert settings["RAY_TOKEN"] == ray_token(SECRET)
    assert SECRET not in str(settings)


def test_previous_output_is_not_sent_to_hosts_that_would_refuse_it() -> None:
    for name, inputs in run_program(guide()).commands.items():
        assert inputs["addPreviousOutputInEnv"] is False, name
        assert "environment" not in inputs, name


def test_every_connection_checks_the_host_key_and_so_does_its_jump() -> None:
    connection = plain(run_program(guide()).commands["edge-1-ray"]["connection"])
    assert connection["hostKey"].startswith("ssh-ed25519 ")
    assert connection["proxy"]["host"] == "203.0.113.5"
    assert connection["proxy"]["hostKey"].startswith("ssh-ed25519 ")
    assert "privateKey" not in connection


def test_root_needs_no_sudo() -> None:
    raw = guide()
    raw["ssh"] = {"user": "root"}
    assert run_program(raw).commands["edge-1-ray"]["create"].startswith("exec /opt/")


def test_repair_reaches_every_command() -> None:
    raw = guide()
    before = run_program(raw).commands
    raw["repair"] = "2026-11-30"
    after = run_program(raw).commands
    assert all(before[name] != after[name] for name in before)


def replaced(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {name for name in before if before[name]["triggers"] != after[name]["triggers"]}


OTHER_HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPZiiLYGu7WvGcoIquggsIuPnw07YCXXts3HJY5i5KZg"


@pytest.mark.parametrize(
    ("settings", "marked"),
    [
        ({"env": {"CAMERA": "1"}}, {"edge-1-ray", "cloud-1-gate"}),
        ({"gpus": 0}, set[str]()),
        ({"group": "robots"}, {"cloud-1-gate"}),
    ],
)
def test_a_preview_shows_the_commands_whose_settings_wait_for_others(
    settings: dict[str, Any], marked: set[str]
) -> None:
    raw = guide()
    before = run_program(raw).commands
    raw["edges"][0].update(settings)
    for component in raw["rlinf"]["component_placement"].values():
        if component["node_group"] == "edge":
            component["node_group"] = settings.get("group", "edge")
    after = run_program(raw).commands
    assert marks(before, after) == marked


def marks(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """The commands whose command line has changed."""
    return {name for name in before if before[name]["create"] != after[name]["create"]}


def test_a_preview_of_repair_shows_the_commands_whose_settings_wait_for_others() -> None:
    raw = guide()
    before = run_program(raw).commands
    raw["repair"] = "again"
    after = run_program(raw).commands
    assert marks(before, after) == {name for name in before if name.endswith(("-ray", "-gate"))}


def test_a_preview_of_a_new_network_secret_shows_the_gate_and_nothing_of_the_secret() -> None:
    before = run_program(guide()).commands
    after = run_program(guide(), secret="another-canary-network-secret").commands
    assert marks(before, after) == {"cloud-1-gate"}
    gate = after["cloud-1-gate"]["create"]
    assert plain(gate) != gate, "it is no secret"


EDGE_1 = {"edge-1-check", "edge-1-prepare", "edge-1-overlay", "edge-1-ray"}


def test_a_machine_at_another_address_is_the_same_machine() -> None:
    raw = guide()
    before = run_program(raw).commands
    raw["edges"][0]["ssh"].update(address="192.168.1.21", jump="cloud-1")
    assert replaced(before, run_program(raw).commands) == set()


def test_a_machine_with_another_host_key_is_another_machine() -> None:
    raw = guide()
    before = run_program(raw).commands
    raw["edges"][0]["ssh"]["host_key"] = OTHER_HOST_KEY
    assert replaced(before, run_program(raw).commands) == EDGE_1


def test_a_machine_whose_key_is_not_known_is_told_by_its_address() -> None:
    raw = guide()
    del raw["edges"][0]["ssh"]["host_key"]
    before = run_program(raw).commands
    raw["edges"][0]["ssh"]["address"] = "192.168.1.21"
    assert replaced(before, run_program(raw).commands) == EDGE_1


def test_the_outputs_are_the_promised_ones() -> None:
    exports = run_program(guide()).exports
    assert set(exports) == {
        "overlay_ips",
        "rlinf_config",
        "nodes",
        "versions",
        "ray_address",
        "launch",
        "ssh_config",
        "join_scripts",
        "readme",
    }
    assert exports["ray_address"] == "10.10.0.10:6379"


def test_wrong_settings_end_the_program_before_the_first_resource() -> None:
    raw = guide()
    raw["edges"][0]["overlay_ip"] = "10.10.0.10"
    with pytest.raises(Refused) as refused:
        run_program(raw, secret=None)
    assert "cluster.edges[0].overlay_ip: 10.10.0.10\n" in refused.value.message
    assert "networkSecret\n" in refused.value.message


def test_stdin_of_a_hostile_setting_is_refused_or_one_line() -> None:
    raw = guide()
    raw["edges"][0]["env"] = {"GREETING": "$(id) `id` \"quoted\" 'single' \\ end"}
    settings: dict[str, Any] = settings_of(run_program(raw).commands["edge-1-ray"])
    lines = base64.b64decode(settings["RAY_ENV_BASE64"]).decode().splitlines()
    assert "GREETING=$(id) `id` \"quoted\" 'single' \\ end" in lines
