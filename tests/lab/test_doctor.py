"""script/doctor on real hosts: what drifts is named, `repair` puts it right, and nothing else is touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from typing import Any

import pytest

from lab import faults
from lab.paths import CLONE
from lab.polling import wait_for
from lab.stack import Stack
from lab.topology import Kind
from tests.lab.cluster_fixtures import lab_with_stack, ok, service_pids
from tests.lab.fault_fixtures import judge_of

pytestmark = pytest.mark.long  # a cluster of its own, with a host without systemd

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2")
UNIT = "/etc/systemd/system/rlinf-ray.service"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    """A cluster whose second edge has no systemd."""
    kinds: dict[str, Kind] = {"edge-2": "container"}
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-doctor", edges=2, kinds=kinds) as stack:
        stack.up()
        yield stack


def doctor(stack: Stack, *arguments: str) -> tuple[int, str]:
    """Exit code and output."""
    command = (sys.executable, "-m", "doctor", "--cwd", str(stack.project), *arguments)
    done = stack.lab.run(*command, cwd=CLONE, PULUMI_STACK="lab")
    return done.returncode, done.stdout + done.stderr


def found(stack: Stack, *, code: int) -> dict[str, Any]:
    """Host to what the report says of it."""
    told, text = doctor(stack, "--json")
    assert told == code, text
    report = json.loads(text)
    assert report["as_planned"] == (code == 0)
    return {host["name"]: host for host in report["hosts"]}


def differences(stack: Stack) -> dict[str, list[str]]:
    """Host to what differs, where anything does."""
    return {name: host["differences"] for name, host in found(stack, code=1).items() if host["differences"]}


def repair(stack: Stack, value: str) -> None:
    stack.change(lambda cluster: cluster.update(repair=value))
    stack.up()


class TestHealthy:
    """Of a cluster that is as planned, the report says so, with what it saw."""

    def test_every_host_is_as_planned(self, stack: Stack) -> None:
        # Direct paths take a moment, and are a fact that is told, no matter of the plan.
        hosts = found(stack, code=0)
        assert [host["rank"] for host in hosts.values()] == [None, "0", "1", "2"]
        assert [host["address"] for host in hosts.values()] == [
            *("10.10.0.1 et0", "10.10.0.10 et0", "10.10.0.11 et0", "10.10.0.12 et0")
        ]
        for name in ("cloud-1", "edge-1", "edge-2"):
            assert (hosts[name]["easytier"], hosts[name]["ray"]) == ("2.6.4", "2.60.0")
            assert hosts[name]["python"].startswith("3.11.")
        assert hosts["edge-1"]["path_to_head"].startswith("direct tcp ")

    def test_the_table_tells_no_secret_and_changes_nothing(self, stack: Stack) -> None:
        pids = {host: service_pids(stack, host) for host in HOSTS}
        code, text = doctor(stack)
        assert code == 0, text
        assert text.count("as planned") == len(HOSTS)
        shown = stack.pulumi("stack", "export", "--show-secrets")
        secret = stack.pulumi("config", "get", "networkSecret").strip()
        told = ok(stack.lab.exec("edge-1", "/opt/rlinf-cloud-edge/libexec/status.sh"))
        token = ok(stack.lab.exec("edge-1", "cat", "/etc/rlinf-cloud-edge/ray.token"))
        assert secret in shown
        for canary in (secret, token):
            assert canary not in text + told
        assert {host: service_pids(stack, host) for host in HOSTS} == pids
        assert "unchanged" in stack.up()

    def test_a_stack_without_outputs_is_nothing_to_ask(self, stack: Stack) -> None:
        code, text = doctor(stack, "--stack", "nobody")
        assert code == 2
        assert "no stack named 'nobody' found" in text


class TestDrift:
    """What people do to hosts by hand is named, host by host; `repair` puts it right and touches no other."""

    def test_everything_that_was_done_by_hand_is_named(self, stack: Stack) -> None:
        ok(stack.lab.exec("bootstrap", "systemctl", "disable", "--now", "rlinf-echo.socket"))
        ok(stack.lab.exec("cloud-1", "nft", "flush", "ruleset"))
        rank = 's/RLINF_NODE_RANK=.*/RLINF_NODE_RANK="7"/'
        ok(stack.lab.exec("edge-1", "sed", "-i", rank, "/etc/rlinf-cloud-edge/ray.env"))
        ok(stack.lab.exec("edge-1", "systemctl", "restart", "rlinf-ray"))
        ok(stack.lab.exec("edge-2", "sed", "-i", "s/mtu = 1380/mtu = 1400/", "/etc/rlinf-cloud-edge/easytier.toml"))
        expected = {
            "bootstrap": ["the echo service does not run: it is inactive"],
            "cloud-1": ["the rules that close Ray's ports to other networks are gone"],
            "edge-1": [
                "/etc/rlinf-cloud-edge/ray.env was changed by hand",
                "Ray runs with RLINF_NODE_RANK=7, not 1",
            ],
            "edge-2": ["/etc/rlinf-cloud-edge/easytier.toml was changed by hand"],
        }
        assert wait_for(lambda: differences(stack) == expected or None, 60), differences(stack)

    def test_repair_puts_it_right_and_starts_no_more_than_it_must(self, stack: Stack) -> None:
        before = {host: service_pids(stack, host) for host in HOSTS}
        repair(stack, "by hand")
        after = {host: service_pids(stack, host) for host in HOSTS}
        assert after["edge-1"].pop("rlinf-ray.service") != before["edge-1"].pop("rlinf-ray.service")
        assert after == before
        assert "cgroupv2" in ok(stack.lab.exec("cloud-1", "nft", "list", "ruleset"))
        found(stack, code=0)

    def test_services_that_were_stopped_are_named_and_come_back(self, stack: Stack) -> None:
        ok(stack.lab.exec("edge-1", "systemctl", "disable", "--now", "rlinf-ray"))
        supervise = ("python3", "-B", "/opt/rlinf-cloud-edge/libexec/supervise.py")
        ok(stack.lab.exec("edge-2", *supervise, "stop", "rlinf-easytier.service"))
        told = differences(stack)
        assert told.keys() == {"edge-1", "edge-2"}
        assert told["edge-1"][0] in {f"Ray does not run: its service is {state}" for state in ("inactive", "failed")}
        assert "EasyTier does not run: its service is inactive" in told["edge-2"]
        before = {host: service_pids(stack, host) for host in HOSTS[:2]}
        repair(stack, "stopped")
        assert {host: service_pids(stack, host) for host in HOSTS[:2]} == before
        found(stack, code=0)


class TestHostsThatAreOut:
    """A host that is gone is a row that says so, in bounded time, and one that is lost or left out is as planned."""

    def test_a_host_without_power_is_named_by_what_ssh_says_and_by_the_head(self, stack: Stack) -> None:
        lab = stack.lab.lab
        faults.stop_host(lab, lab.host("edge-1"))
        try:
            told = differences(stack)
            assert told.keys() == {"edge-1"}
            assert told["edge-1"][0].startswith(("not reached: ", "no answer within 30 s"))
            assert wait_for(lambda: "the head does not have it" in differences(stack)["edge-1"][-1] or None, 120)
        finally:
            faults.start_host(lab, lab.host("edge-1"))
        judge = judge_of(stack)
        judge.recovers("edge without power", 150)
        found(stack, code=0)

    def test_a_lost_host_and_one_left_out_are_as_planned(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            cluster["edges"][0]["lost"] = True
            cluster["edges"][1]["enabled"] = False
            cluster["rlinf"]["component_placement"] = {"actor": {"node_group": "cloud", "placement": "0-0"}}

        stack.change(edit)
        stack.up()
        hosts = found(stack, code=0)
        assert (hosts["edge-1"]["state"], hosts["edge-1"]["reached"]) == ("lost", False)
        assert (hosts["edge-2"]["state"], hosts["edge-2"]["ray"]) == ("disabled", None)

    def test_a_host_from_which_all_was_removed_is_named(self, stack: Stack) -> None:
        ok(stack.lab.exec("edge-2", "rm", "/opt/rlinf-cloud-edge/libexec/status.sh"))
        assert "nothing of this project is on it" in differences(stack)["edge-2"][0]
