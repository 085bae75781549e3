"""The report of drift: what it reads, what it finds to differ, and how it tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.outputs import outputs
from components.plan import make_plan
from config.models import Cluster
from doctor.compare import Answer, compare
from doctor.plan import NoPlanError, Plan, read_outputs
from doctor.status import Path, read_status
from doctor.table import render, to_json
from tests.example_settings import direct, guide

PEERS = [
    {"ipv4": "10.10.0.11", "cost": "Local", "lat_ms": "-", "tunnel_proto": "-", "version": "2.6.4-81487c36"},
    {"ipv4": "10.10.0.1", "cost": "p2p", "lat_ms": "0.61", "tunnel_proto": "tcp", "version": "2.6.4-81487c36"},
    {"ipv4": "10.10.0.10", "cost": "relay(2)", "lat_ms": "3.20", "tunnel_proto": "", "version": "2.6.4-81487c36"},
    {"ipv4": "", "cost": "p2p", "lat_ms": "1", "tunnel_proto": "udp", "version": "2.6.4"},
]
EDGE: dict[str, str] = {
    "SERVICES": "systemd",
    "ADDRESSES": "lo=127.0.0.1/8 host0@if2=192.168.1.20/24 et0=10.10.0.11/24 ",
    "CHANGED": "",
    "EASYTIER_STATE": "active",
    "EASYTIER_BOOT": "enabled",
    "ECHO_STATE": "active",
    "PEERS": json.dumps(PEERS),
    "RAY_STATE": "active",
    "RAY_BOOT": "enabled",
    "PORTS": "closed",
    "RANK": "1",
    "RAY_DEVICE": "et0",
    "RAY_IP": "10.10.0.11",
    "RAY_VERSION": "2.60.0",
    "PYTHON_VERSION": "3.11.2",
}


def plan_of(raw: dict[str, Any]) -> Plan:
    cluster = Cluster.model_validate(raw)
    return read_outputs(json.loads(json.dumps(outputs(cluster, make_plan(cluster)))))


def lines(told: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in told.items())


def answer(**changes: str | None) -> Answer:
    """The answer of an edge of which all is as planned, but for these lines; None: without that line."""
    told = {key: value for key, value in {**EDGE, **changes}.items() if value is not None}
    return Answer(read_status(lines(told)))


def differences(told: Answer, raw: dict[str, Any] | None = None, head: Answer | None = None) -> list[str]:
    """What differs on the edge."""
    answers = {"edge-1": told} | ({"cloud-1": head} if head else {})
    findings = compare(plan_of(raw or guide()), answers)
    return next(finding.differences for finding in findings if finding.expected.name == "edge-1")


class TestReading:
    """What a host prints becomes what is known of it; what it left out stays unknown."""

    def test_ways_to_others_are_direct_or_relayed(self) -> None:
        status = answer().status
        assert status is not None
        assert status.paths is not None
        assert status.paths == {"10.10.0.1": Path(0, 0.61, "tcp"), "10.10.0.10": Path(2, 3.2, "")}
        assert list(map(str, status.paths.values())) == ["direct tcp 0.6 ms", "relayed by 2 3.2 ms"]
        assert status.easytier_version == "2.6.4"

    def test_nothing_at_all_is_a_host_without_us(self) -> None:
        assert not read_status("").installed
        assert not read_status("Welcome to edge-1\n").installed

    @pytest.mark.parametrize("peers", ["", "Error: no answer", "{}", "null"])
    def test_an_easytier_that_does_not_answer_has_no_ways(self, peers: str) -> None:
        status = answer(PEERS=peers).status
        assert status is not None
        assert status.paths is None

    def test_outputs_of_an_older_program_are_refused_with_what_to_do(self) -> None:
        with pytest.raises(NoPlanError, match=r"no output versions.*Run `pulumi up`"):
            read_outputs({"nodes": [], "ssh_config": ""})


class TestDifferences:
    """Each deviation is named by what was found and what was planned."""

    def test_there_are_none_where_all_is_as_planned(self) -> None:
        assert differences(answer()) == []

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"EASYTIER_STATE": "failed"}, ["EasyTier does not run: its service is failed"]),
            ({"EASYTIER_STATE": None}, ["EasyTier does not run: its service is not there"]),
            ({"EASYTIER_BOOT": "disabled"}, ["EasyTier does not start at boot: it is disabled"]),
            ({"SERVICES": "supervised", "EASYTIER_BOOT": "never", "RAY_BOOT": "never"}, []),
            ({"ADDRESSES": "et0=10.10.0.12/24"}, ["et0 has no address 10.10.0.11"]),
            ({"ECHO_STATE": "inactive"}, ["the echo service does not run: it is inactive"]),
            ({"PEERS": ""}, ["EasyTier runs, but does not answer on its RPC port"]),
            (
                {"PEERS": json.dumps([{**PEERS[0], "version": "2.6.3-0123456"}])},
                [
                    "EasyTier 2.6.3 runs, not 2.6.4",
                    "EasyTier knows no way to bootstrap (10.10.0.1)",
                    "EasyTier knows no way to cloud-1 (10.10.0.10)",
                ],
            ),
            ({"RAY_STATE": "inactive", "RANK": None}, ["Ray does not run: its service is inactive"]),
            ({"RANK": None}, ["Ray waits for its address or for the head"]),
            ({"RANK": "7"}, ["Ray runs with RLINF_NODE_RANK=7, not 1"]),
            ({"RAY_DEVICE": "eth0"}, ["Ray runs with RLINF_COMM_NET_DEVICES=eth0, not et0"]),
            ({"RAY_IP": "192.168.1.20"}, ["Ray runs on 192.168.1.20, not 10.10.0.11"]),
            ({"RAY_VERSION": "2.59.0"}, ["Ray 2.59.0 runs, not 2.60.0"]),
            ({"PYTHON_VERSION": "3.1.1"}, ["Python 3.1.1 runs, not 3.11"]),
            ({"PORTS": "open"}, ["the rules that close Ray's ports to other networks are gone"]),
            ({"CHANGED": "/etc/a /etc/b "}, ["/etc/a was changed by hand", "/etc/b was changed by hand"]),
        ],
    )
    def test_one_thing_that_differs_is_the_one_that_is_told(
        self, changes: dict[str, str | None], expected: list[str]
    ) -> None:
        assert differences(answer(**changes)) == expected

    def test_a_host_that_is_not_reached_says_why(self) -> None:
        assert differences(Answer(None, "not reached: Connection refused")) == ["not reached: Connection refused"]

    def test_a_host_without_anything_of_ours(self) -> None:
        assert "nothing of this project is on it" in differences(Answer(read_status("")))[0]

    def test_the_head_knows_of_a_node_that_we_do_not_reach(self) -> None:
        head = answer(RANK="0", RAY_IP="10.10.0.10", ADDRESSES="et0=10.10.0.10/24", RAY_NODES="10.10.0.10")
        assert differences(answer(), head=head) == ["the head does not have it among Ray's nodes"]
        assert differences(answer(PYTHON_VERSION="3.11.3"), head=head)[0] == (
            "Python 3.11.3 runs, and 3.11.2 on the head"
        )

    def test_a_disabled_host_is_to_run_no_ray(self) -> None:
        raw = guide()
        raw["edges"][0]["enabled"] = False
        raw["rlinf"]["component_placement"] = {"actor": {"node_group": "cloud", "placement": "0-0"}}
        assert differences(answer(RAY_STATE=None, RANK=None, PORTS=None), raw) == []
        assert differences(answer(), raw) == ["Ray is there (active), and the host takes no part"]

    def test_a_lost_host_is_not_asked_and_nothing_is_expected_of_it(self) -> None:
        raw = guide()
        raw["edges"][0]["lost"] = True
        raw["rlinf"]["component_placement"] = {"actor": {"node_group": "cloud", "placement": "0-0"}}
        (finding,) = (each for each in compare(plan_of(raw), {}) if each.expected.name == "edge-1")
        assert (finding.differences, finding.answer.why) == ([], "lost: not asked")
        assert not finding.expected.login

    def test_without_an_overlay_the_host_has_its_own_address_and_no_easytier(self) -> None:
        changes = {"EASYTIER_STATE": None, "ECHO_STATE": None, "PEERS": None, "RAY_IP": "192.0.2.20"}
        told = answer(**changes, RAY_DEVICE="enp1s0", ADDRESSES="enp1s0=192.0.2.20/24")
        assert differences(told, direct()) == []
        assert differences(answer(**changes, RAY_DEVICE="enp1s0"), direct()) == ["enp1s0 has no address 192.0.2.20"]


class TestTelling:
    """The table has a row for every host; JSON has the same."""

    def test_the_table(self) -> None:
        answers = {
            "bootstrap": Answer(None, "not reached: Connection timed out"),
            "cloud-1": Answer(None, "no answer within 30 s"),
            "edge-1": answer(RANK="2"),
        }
        plan = plan_of(guide())
        told = render(plan, compare(plan, answers)).splitlines()
        assert [line.split()[0] for line in told[:4]] == ["host", "bootstrap", "cloud-1", "edge-1"]
        assert told[3].split("  ")[-1] == "1 difference"
        assert "relayed by 2 3.2 ms" in told[3]
        assert told[5:8] == [
            "bootstrap: not reached: Connection timed out",
            "cloud-1: no answer within 30 s",
            "edge-1: Ray runs with RLINF_NODE_RANK=2, not 1",
        ]

    def test_json(self) -> None:
        plan = plan_of(guide())
        report = json.loads(to_json(plan, compare(plan, {"edge-1": answer()})))
        (edge,) = (host for host in report["hosts"] if host["name"] == "edge-1")
        assert edge == {
            "name": "edge-1",
            "state": "enabled",
            "reached": True,
            "rank": "1",
            "address": "10.10.0.11 et0",
            "path_to_head": "relayed by 2 3.2 ms",
            "easytier": "2.6.4",
            "ray": "2.60.0",
            "python": "3.11.2",
            "differences": [],
        }
