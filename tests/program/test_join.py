"""Hosts that join by a script: what the program asks Pulumi for before and after, and what their owners get."""

from __future__ import annotations

from typing import Any

import pytest

from components.token import ray_token
from tests.example_settings import HOST_KEY, direct, guide_with_edges
from tests.program.harness import SECRET, plain, run_program, settings_of


def joining(join: str, **more: Any) -> dict[str, Any]:
    """Two edges, of which the second joins by a script."""
    raw = guide_with_edges(2)
    raw["edges"][1]["join"] = join
    raw["edges"][1]["ssh"] = {"host_key": HOST_KEY} if join == "overlay" else {}
    raw["edges"][1] |= more
    return raw


def scripts(raw: dict[str, Any]) -> dict[str, str]:
    """Host name to join script."""
    return run_program(raw).exports["join_scripts"]


class TestCommands:
    """Which commands there are follows from the settings alone, so a preview shows each."""

    @pytest.mark.parametrize(("joined", "more"), [(False, []), (True, ["edge-2-check"])])
    def test_a_host_that_we_log_in_to_later_has_the_same_ones_and_is_then_checked(
        self, joined: bool, more: list[str]
    ) -> None:
        names = [name for name in run_program(joining("overlay", joined=joined)).commands if name.startswith("edge-2")]
        assert sorted(names) == [*more, "edge-2-overlay", "edge-2-prepare", "edge-2-ray"]

    @pytest.mark.parametrize("joined", [False, True])
    def test_a_host_that_we_never_log_in_to_has_its_component_and_no_command(self, joined: bool) -> None:
        program = run_program(joining("script", joined=joined))
        assert [name for name in program.resources if name.startswith("edge-2")] == ["edge-2"]

    def test_before_it_has_joined_they_do_nothing_and_leave_what_is_recorded_alone(self) -> None:
        program = run_program(joining("overlay"))
        for name in ("edge-2-prepare", "edge-2-overlay", "edge-2-ray"):
            inputs = program.commands[name]
            assert (inputs["create"], inputs.get("delete"), inputs.get("stdin")) == ("true", None, None)
            assert plain(inputs["connection"])["host"] == "203.0.113.10"
            assert program.requests[name]["retainOnDelete"] is True
            assert {"create", "delete", "connection", "stdin"} <= set(program.requests[name]["ignoreChanges"])

    def test_afterwards_they_go_over_the_overlay_through_the_bootstrap(self) -> None:
        commands = run_program(joining("overlay", joined=True)).commands
        for name in ("edge-2-check", "edge-2-prepare", "edge-2-overlay", "edge-2-ray"):
            connection = plain(commands[name]["connection"])
            assert (connection["host"], connection["proxy"]["host"]) == ("10.10.1.3", "203.0.113.5")
            assert connection["hostKey"] == HOST_KEY

    def test_its_removal_comes_before_that_of_the_bootstraps_overlay_and_as_one_piece(self) -> None:
        program = run_program(joining("overlay", joined=True))
        for name in ("edge-2-check", "edge-2-prepare"):
            assert "bootstrap-overlay" in program.requests[name]["dependencies"]
        assert "edge-2-prepare" not in program.requests["bootstrap-overlay"]["dependencies"]
        assert "edge-2-prepare" in program.requests["edge-2-overlay"]["dependencies"]
        assert "down" not in program.commands["edge-2-overlay"]["delete"]
        assert "REACHED=overlay\n" in plain(program.commands["edge-2-prepare"]["stdin"])
        assert "REACHED" not in plain(program.commands["edge-1-prepare"]["stdin"])

    @pytest.mark.parametrize("join", ["overlay", "script"])
    def test_joining_changes_nothing_on_other_hosts_but_the_gate(self, join: str) -> None:
        before, after = (run_program(joining(join, joined=joined)).commands for joined in (False, True))
        changed = {name for name in before if before[name] != after[name]}
        assert {name for name in changed if not name.startswith("edge-2")} == {"cloud-1-gate"}


class TestOutputs:
    """The config counts every host from the first `up` on; the table tells who is there."""

    @pytest.mark.parametrize("join", ["overlay", "script"])
    @pytest.mark.parametrize(("joined", "state"), [(False, "pending"), (True, "joined")])
    def test_the_table_has_its_state(self, join: str, joined: bool, state: str) -> None:
        exports = run_program(joining(join, joined=joined)).exports
        row = next(row for row in exports["nodes"] if row["name"] == "edge-2")
        assert (row["state"], row["rank"]) == (state, 2)
        assert "num_nodes: 3" in exports["rlinf_config"]

    def test_there_is_a_script_for_each_host_that_joins_and_for_no_other(self) -> None:
        raw = joining("overlay", joined=True)
        raw["edges"].append({"name": "edge-3", "overlay_ip": "10.10.9.3", "join": "script"})
        raw["edges"].append({"name": "edge-4", "overlay_ip": "10.10.9.4", "join": "script", "lost": True})
        assert set(scripts(raw)) == {"edge-2", "edge-3"}
        assert scripts(guide_with_edges(1)) == {}

    def test_the_scripts_are_the_only_secret_among_the_outputs(self) -> None:
        assert run_program(joining("script")).secret_exports == {"join_scripts"}


class TestScripts:
    """A script holds what its host needs, and no more."""

    def test_for_the_overlay_it_holds_the_network_secret_and_nothing_of_ray(self) -> None:
        text = scripts(joining("overlay"))["edge-2"]
        assert f"\nNETWORK_SECRET={SECRET}\n" in text
        assert ray_token(SECRET) not in text
        assert "\nRAY_VERSION=" not in text

    def test_for_everything_it_holds_ray_with_the_hosts_rank(self) -> None:
        text = scripts(joining("script", ssh={"user": "robot"}))["edge-2"]
        for line in ("RANK=2", f"RAY_TOKEN={ray_token(SECRET)}", "RAY_USER=robot", "ROLE=worker", "HEAD_IP=10.10.0.10"):
            assert f"\n{line}\n" in text

    def test_a_host_that_is_out_for_now_joins_the_overlay_alone(self) -> None:
        text = scripts(joining("script", enabled=False))["edge-2"]
        assert ray_token(SECRET) not in text
        assert f"\nNETWORK_SECRET={SECRET}\n" in text

    def test_without_an_overlay_it_does_ray_alone(self) -> None:
        raw = direct()
        del raw["edges"][0]["ssh"]
        raw["edges"][0] |= {"join": "script", "address": "192.0.2.20"}
        text = scripts(raw)["edge-1"]
        assert "\nsettings_overlay() {\n  cat <<'END_OF_DATA'\nEND_OF_DATA\n}\n" in text
        assert "\nreadonly OVERLAY_IP=''\n" in text
        for line in ("ADDRESS=192.0.2.20", "DEVICE=enp1s0", "RANK=1", "HEAD_IP=192.0.2.10"):
            assert f"\n{line}\n" in text

    def test_it_asks_for_no_port(self) -> None:
        assert "\nOVERLAY_PORT=\n" in scripts(joining("script"))["edge-2"]
        commands = run_program(joining("overlay", joined=True)).commands
        assert "\nOVERLAY_PORT=\n" in plain(commands["edge-2-check"]["stdin"])
        assert settings_of(commands["edge-1-overlay"])["TOML_BASE64"]
