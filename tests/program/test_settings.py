"""What the program makes of hosts that are left out, of several bootstraps, of ranks and of no overlay."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.example_settings import direct, guide, guide_with_edges
from tests.program.harness import FACTS, Recorder, plain, run_program, settings_of


def planned(recorder: Recorder, gate: str = "cloud-1-gate") -> list[tuple[int, str, str, str]]:
    """Rank, name, address and device of the nodes that the gate asks for."""
    settings = settings_of(recorder.commands[gate])
    plan = json.loads(base64.b64decode(settings["PLAN_BASE64"]))
    return [(node["rank"], node["name"], node["ip"], node["device"]) for node in plan["nodes"]]


def changed(before: Recorder, after: Recorder) -> set[str]:
    """Names of the commands that another run would update, create or delete."""
    names = set(before.commands) | set(after.commands)
    return {name for name in names if before.commands.get(name) != after.commands.get(name)}


def two_bootstraps() -> dict[str, Any]:
    raw = guide()
    raw["bootstrap"] = [
        raw["bootstrap"],
        {"name": "bootstrap-2", "overlay_ip": "10.10.0.2", "ssh": {"address": "203.0.113.6"}},
    ]
    return raw


class TestANodeThatIsDisabled:
    """It keeps its place in the settings and the overlay, and is left out of Ray, the gate and the config."""

    def disabled(self) -> Recorder:
        raw = guide_with_edges(3)
        raw["edges"][1]["enabled"] = False
        return run_program(raw)

    def test_it_stays_in_the_overlay_and_runs_no_ray(self) -> None:
        commands = self.disabled().commands
        names = {name for name in commands if name.startswith("edge-2-")}
        assert names == {"edge-2-check", "edge-2-prepare", "edge-2-overlay"}

    def test_the_gate_and_the_config_do_without_it(self) -> None:
        recorder = self.disabled()
        assert [(rank, name) for rank, name, _, _ in planned(recorder)] == [
            (0, "cloud-1"),
            (1, "edge-1"),
            (2, "edge-3"),
        ]
        assert "num_nodes: 3\n" in recorder.exports["rlinf_config"]
        row = next(row for row in recorder.exports["nodes"] if row["name"] == "edge-2")
        assert (row["state"], row["rank"]) == ("disabled", None)

    def test_only_nodes_whose_rank_changes_start_ray_anew(self) -> None:
        before = run_program(guide_with_edges(3))
        assert changed(before, self.disabled()) == {"edge-2-ray", "edge-3-ray", "cloud-1-gate"}

    def test_with_ranks_of_its_own_no_other_node_is_touched(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][1]["rank"] = 3
        before = run_program(raw)
        raw["edges"][1]["enabled"] = False
        assert changed(before, run_program(raw)) == {"edge-2-ray", "cloud-1-gate"}

    def test_the_next_cloud_node_is_head(self) -> None:
        raw = guide()
        raw["cloud"].append(
            {"name": "cloud-2", "overlay_ip": "10.10.0.20", "gpus": 4, "ssh": {"address": "203.0.113.20"}}
        )
        raw["cloud"][0]["enabled"] = False
        recorder = run_program(raw)
        assert settings_of(recorder.commands["cloud-2-ray"])["ROLE"] == "head"
        assert settings_of(recorder.commands["edge-1-ray"])["HEAD_IP"] == "10.10.0.20"
        assert {"cloud-2-gate"} == {name for name in recorder.commands if name.endswith("-gate")}
        assert recorder.exports["ray_address"] == "10.10.0.20:6379"


class TestAHostThatIsLost:
    """Nothing connects to it any more, the others do without it, and its entry can then go without a login."""

    def lost(self) -> Recorder:
        raw = guide_with_edges(3)
        raw["edges"][1]["lost"] = True
        return run_program(raw)

    def test_each_of_its_commands_is_kept_as_recorded_and_is_not_run_when_deleted(self) -> None:
        recorder = self.lost()
        for step in ("prepare", "overlay", "ray"):
            asked = recorder.requests[f"edge-2-{step}"]
            assert asked["retainOnDelete"] is True
            assert {"connection", "create", "delete", "stdin", "triggers"} <= set(asked["ignoreChanges"])

    def test_no_other_host_has_a_command_that_is_kept_or_not_run(self) -> None:
        for name, asked in self.lost().requests.items():
            if not name.startswith("edge-2-"):
                assert asked["retainOnDelete"] is False, name
                assert asked["ignoreChanges"] == [], name

    def test_what_was_never_recorded_does_nothing_on_a_host_that_is_there(self) -> None:
        recorder = self.lost()
        for step in ("prepare", "overlay", "ray"):
            inputs = recorder.commands[f"edge-2-{step}"]
            assert inputs["create"] == "true"
            assert "delete" not in inputs
            assert plain(inputs["connection"])["host"] == "203.0.113.10"

    def test_nothing_in_any_command_names_it(self) -> None:
        for name, inputs in self.lost().commands.items():
            if not name.startswith("edge-2-"):
                assert "192.168.0.3" not in json.dumps(inputs), name
                assert "edge-2" not in json.dumps(inputs), name

    def test_the_gate_the_config_and_the_outputs_do_without_it(self) -> None:
        recorder = self.lost()
        assert [name for _, name, _, _ in planned(recorder)] == ["cloud-1", "edge-1", "edge-3"]
        exports = recorder.exports
        assert "num_nodes: 3\n" in exports["rlinf_config"]
        assert "edge-2" not in exports["overlay_ips"]
        assert "Host edge-2" not in exports["ssh_config"]
        assert [row["state"] for row in exports["nodes"] if row["name"] == "edge-2"] == ["lost"]

    def test_deleting_its_entry_afterwards_changes_no_other_host(self) -> None:
        raw = guide_with_edges(3)
        del raw["edges"][1]
        assert changed(self.lost(), run_program(raw)) == {"edge-2-prepare", "edge-2-overlay", "edge-2-ray"}

    def test_a_cloud_node_may_have_been_the_head(self) -> None:
        raw = guide()
        raw["cloud"].append(
            {"name": "cloud-2", "overlay_ip": "10.10.0.20", "gpus": 4, "ssh": {"address": "203.0.113.20"}}
        )
        raw["cloud"][0]["lost"] = True
        recorder = run_program(raw)
        assert recorder.requests["cloud-1-gate"]["retainOnDelete"] is True
        assert plain(recorder.commands["cloud-1-gate"]["connection"])["host"] == "203.0.113.20"
        assert settings_of(recorder.commands["cloud-2-gate"])["RLINF_CONFIG_NAME"] == "cluster"
        # Its listener is gone, too.
        peers = settings_of(recorder.commands["edge-1-overlay"])["PEERS"]
        assert peers == "tcp://203.0.113.5:11010"

    def test_a_lost_bootstrap_is_nobodys_peer(self) -> None:
        raw = two_bootstraps()
        raw["bootstrap"][0]["lost"] = True
        raw["edges"][0]["ssh"]["jump"] = "bootstrap-2"
        settings = settings_of(run_program(raw).commands["edge-1-overlay"])
        assert settings["PEERS"].split() == ["tcp://203.0.113.6:11010", "tcp://203.0.113.10:11010"]
        assert settings["BOOTSTRAP_IPS"] == "10.10.0.2"


class TestSeveralBootstraps:
    """Every host peers with each, and has proved that a payload passes to each."""

    def test_each_host_peers_with_each(self) -> None:
        commands = run_program(two_bootstraps()).commands
        for host in ("cloud-1", "edge-1"):
            settings = settings_of(commands[f"{host}-overlay"])
            assert settings["PEERS"].split()[:2] == ["tcp://203.0.113.5:11010", "tcp://203.0.113.6:11010"]
            assert settings["BOOTSTRAP_IPS"] == "10.10.0.1 10.10.0.2"

    def test_the_later_one_joins_the_earlier(self) -> None:
        commands = run_program(two_bootstraps()).commands
        first, second = (settings_of(commands[f"{name}-overlay"]) for name in ("bootstrap", "bootstrap-2"))
        assert (first["PEERS"], first["BOOTSTRAP_IPS"]) == ("", "")
        assert (second["PEERS"], second["BOOTSTRAP_IPS"]) == ("tcp://203.0.113.5:11010", "10.10.0.1")

    def test_the_others_wait_for_both(self) -> None:
        waits = run_program(two_bootstraps()).requests["edge-1-overlay"]["dependencies"]
        assert {"bootstrap-overlay", "bootstrap-2-overlay", "edge-1-prepare"} <= set(waits)


class TestDirectMode:
    """Without an overlay there is no bootstrap, no EasyTier and no overlay command."""

    def test_each_node_gets_checks_and_ray_and_nothing_else(self) -> None:
        assert sorted(run_program(direct()).commands) == [
            "cloud-1-check",
            "cloud-1-gate",
            "cloud-1-prepare",
            "cloud-1-ray",
            "edge-1-check",
            "edge-1-prepare",
            "edge-1-ray",
        ]

    def test_ray_has_each_hosts_own_address_and_device(self) -> None:
        recorder = run_program(direct())
        settings = settings_of(recorder.commands["edge-1-ray"])
        assert (settings["OVERLAY_IP"], settings["DEVICE"], settings["HEAD_IP"]) == (
            "192.0.2.20",
            "enp1s0",
            "192.0.2.10",
        )
        assert settings["ECHO_PORT"] == ""
        environment = base64.b64decode(settings["RAY_ENV_BASE64"]).decode().splitlines()
        assert "RLINF_COMM_NET_DEVICES=enp1s0" in environment
        assert planned(recorder) == [
            (0, "cloud-1", "192.0.2.10", "eth0"),
            (1, "edge-1", "192.0.2.20", "enp1s0"),
        ]

    def test_the_checks_ask_for_the_address_and_not_for_easytier(self) -> None:
        stdin = plain(run_program(direct()).commands["edge-1-check"]["stdin"])
        assert "\nADDRESS=192.0.2.20\n" in stdin
        assert "\nDEVICE=enp1s0\n" in stdin
        assert "\nEASYTIER_VERSION=" not in stdin

    def test_the_outputs_hold_the_hosts_own_addresses(self) -> None:
        exports = run_program(direct()).exports
        assert exports["overlay_ips"] == {"cloud-1": "192.0.2.10", "edge-1": "192.0.2.20"}
        assert exports["ray_address"] == "192.0.2.10:6379"
        assert "n1 --- n0" in exports["readme"]


class TestRanksAndVariables:
    """Explicit ranks and variables reach the nodes."""

    def test_a_node_runs_with_the_rank_it_is_given(self) -> None:
        raw = guide_with_edges(2)
        raw["edges"][0]["rank"] = 2
        commands = run_program(raw).commands
        assert [settings_of(commands[f"{name}-ray"])["RANK"] for name in ("cloud-1", "edge-1", "edge-2")] == [
            "0",
            "2",
            "1",
        ]

    def test_a_hosts_own_variables_win_over_those_of_all(self) -> None:
        raw = guide()
        raw["ray"] = {"env": {"HF_ENDPOINT": "https://mirror.example", "LEVEL": 1}}
        raw["edges"][0]["env"] = {"LEVEL": 2}
        commands = run_program(raw).commands
        of = {
            name: base64.b64decode(settings_of(commands[f"{name}-ray"])["RAY_ENV_BASE64"]).decode().splitlines()
            for name in ("cloud-1", "edge-1")
        }
        assert "LEVEL=1" in of["cloud-1"]
        assert {"LEVEL=2", "HF_ENDPOINT=https://mirror.example"} <= set(of["edge-1"])


class TestFilesOfTheSettings:
    """The base config and shared settings are read beside Pulumi.yaml."""

    def test_the_base_config_is_rendered_for_the_output_and_the_head(self, tmp_path: Path) -> None:
        (tmp_path / "ppo.yaml").write_text("# mine\ncluster: {num_nodes: 9}\nrunner: 1\n")
        raw = guide()
        raw["rlinf"]["base_config"] = "ppo.yaml"
        recorder = run_program(raw, folder=tmp_path)
        config = recorder.exports["rlinf_config"]
        assert config.startswith("# mine\ncluster:\n  num_nodes: 2\n")
        assert config.endswith("\nrunner: 1\n")
        settings = settings_of(recorder.commands["cloud-1-gate"])
        assert settings["RLINF_CONFIG_NAME"] == "ppo"
        assert base64.b64decode(settings["RLINF_CONFIG_BASE64"]).decode() == config
        assert recorder.exports["launch"].endswith("--config-path /etc/rlinf-cloud-edge/rlinf --config-name ppo\n")


class TestEnvironments:
    """Each host's Ray comes from where its own entry, else `cluster.ray`, says."""

    def test_a_hosts_own_wins_as_a_whole(self) -> None:
        raw = guide_with_edges(2)
        raw["ray"] = {"venv": "/opt/venv"}
        raw["edges"][0]["ray"] = {"activate": "source switch_env openvla"}
        recorder = run_program(raw)
        named = {
            host: (settings["RAY_VENV"], settings["RAY_ACTIVATE"])
            for host in ("cloud-1", "edge-1", "edge-2")
            for settings in [settings_of(recorder.commands[f"{host}-ray"])]
        }
        assert named == {
            "cloud-1": ("/opt/venv", ""),
            "edge-1": ("", "source switch_env openvla"),
            "edge-2": ("/opt/venv", ""),
        }
        for host, (venv, activate) in named.items():
            for step in ("check", "prepare"):
                stdin = str(plain(recorder.commands[f"{host}-{step}"]["stdin"]))
                assert f"\nRAY_VENV={venv}\n" in stdin
                assert f"\nRAY_ACTIVATE={activate}\n" in stdin

    def test_nodes_that_differ_are_named_and_no_ray_is_asked_for(self) -> None:
        recorder = Recorder(facts={"edge-2": FACTS.replace("3.11.2", "3.11.9")})
        with pytest.raises(pulumi.RunError, match=r"edge-2: Python is 3\.11\.9 there, and 3\.11\.2 on the"):
            run_program(guide_with_edges(3), recorder=recorder)
        assert not [name for name in recorder.commands if name.endswith(("-ray", "-gate"))]

    def test_a_node_that_takes_no_part_may_differ(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][1]["enabled"] = False
        run_program(raw, recorder=Recorder(facts={"edge-2": FACTS.replace("3.11.2", "3.11.9")}))


class TestAccelerators:
    """A host is checked for as many as its entry says, and for none where it says nothing or RLinf does not look."""

    @pytest.mark.parametrize(
        ("edge", "group", "asked"),
        [({}, {}, ""), ({"gpus": 2}, {}, "2"), ({"gpus": 0}, {}, "0"), ({"gpus": 2}, {"ignore_hardware": True}, "")],
    )
    def test_the_number_reaches_the_checks(self, edge: dict[str, Any], group: dict[str, Any], asked: str) -> None:
        raw = guide()
        raw["edges"][0] |= edge
        raw["rlinf"]["node_groups"] = {"edge": group} if group else {}
        stdin = str(plain(run_program(raw).commands["edge-1-check"]["stdin"]))
        assert f"\nGPUS={asked}\n" in stdin
