"""What goes wrong gives one clear error, leaves the rest done and recorded, and nothing half done behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from typing import Any

import pytest

from lab import faults
from lab.stack import Stack
from tests.lab.cluster_fixtures import failed, files_on, lab_with_stack, ok, service_pids, told_by_checks

HOSTS = ("bootstrap", "cloud-1", "edge-1")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-failures", edges=1) as stack:
        yield stack


def recorded(stack: Stack) -> set[str]:
    """Names of the resources in the state."""
    state = json.loads(stack.pulumi("stack", "export"))
    return {resource["urn"].rpartition("::")[2] for resource in state["deployment"].get("resources", [])}


def processor_seconds() -> float:
    """What the commands that have ended have used of the processors so far, what they started included."""
    used = os.times()
    return used.children_user + used.children_system


def quickly(cluster: dict[str, Any]) -> None:
    """Dials for 5 seconds, since nothing that can't be reached here will come up later."""
    cluster["ssh"]["connect_timeout"] = 5


class TestBeforeAnythingIsCreated:
    """Settings that can't work end `pulumi preview`, without a connection."""

    def test_ten_faults_in_one_file_give_ten_messages_in_under_five_seconds(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            edge = cluster["edges"][0]
            edge["overlay_ip"] = cluster["cloud"][0]["overlay_ip"]
            edge["ssh"]["jump"] = "bastion"
            edge["group"] = "node"
            edge["ssh"]["host_key"] = "ssh-ed25519 AAAA"
            cluster["cloud"][0]["ssh"]["address"] = "10.10.0.77"
            cluster["cloud"][0]["public_address"] = "127.0.0.1"
            cluster["bootstrap"]["overlay_ip"] = "10.10.0.255"
            cluster["bootstrap"]["name"] = "edge-1"

        stack.change(edit)
        started, worked = time.monotonic(), processor_seconds()
        told = failed(stack, "preview")
        # Of work, so that what else the machine does is not counted; and it waits for nothing.
        assert 0 < processor_seconds() - worked < 5
        assert time.monotonic() - started < 45
        assert "the settings have 10 faults; nothing was changed" in told
        assert told.count("rule: ") == told.count("fix:  ") == 10
        assert recorded(stack) == set()

    def test_an_unknown_key_is_named_with_the_nearest_known_one(self, stack: Stack) -> None:
        stack.change(lambda cluster: cluster["overlay"].update(divice="et1"))
        told = failed(stack, "up", "--yes")
        assert "cluster.overlay.divice: et1" in told
        assert "write `device`" in told
        assert "Traceback" not in told
        assert recorded(stack) == set()


class TestOnTheWayToAHost:
    """A host that can't be reached is named with the fix; the others are done and recorded."""

    @pytest.mark.long
    def test_a_host_that_does_not_answer(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            quickly(cluster)
            cluster["edges"][0]["ssh"]["address"] = "192.168.1.99"

        stack.change(edit)
        # A jump host dials as long as its own TCP allows: 127 s where nobody has changed that, 7 s here.
        ok(stack.lab.exec("bootstrap", "sysctl", "--write", "net.ipv4.tcp_syn_retries=2"))
        started = time.monotonic()
        told = failed(stack, "up", "--yes", "--skip-preview")
        assert time.monotonic() - started < 90
        assert "edge-1 (192.168.1.99:22 through bootstrap) can't be reached. Check that it is on" in told
        assert {"bootstrap-check", "cloud-1-check"} <= recorded(stack)
        assert "edge-1-check" not in recorded(stack)

    def test_a_host_with_another_host_key(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            quickly(cluster)
            cluster["cloud"][0]["ssh"]["host_key"] = cluster["bootstrap"]["ssh"]["host_key"]

        stack.pulumi("destroy", "--yes")
        stack.change(edit)
        told = failed(stack, "up", "--yes", "--skip-preview")
        assert "cloud-1 (203.0.113.10:22) shows another host key than ssh.host_key" in told
        assert "cloud-1-check" not in recorded(stack)

    def test_an_account_that_may_not_use_sudo(self, stack: Stack) -> None:
        stack.pulumi("destroy", "--yes")
        stack.change(quickly)
        rule = ok(stack.lab.exec("edge-1", "grep", "-rl", "NOPASSWD", "/etc/sudoers.d")).split()[0]
        ok(stack.lab.exec("edge-1", "mv", rule, "/root/sudo-rule"))
        try:
            told = failed(stack, "up", "--yes", "--skip-preview")
        finally:
            ok(stack.lab.exec("edge-1", "mv", "/root/sudo-rule", rule))
        assert "edge-1: debian may not use sudo without a password. Allow it with" in told
        assert ok(stack.lab.exec("edge-1", "ls", "/tmp")).count("tmp.") == 0


class TestOnAHost:
    """What checks find is told, of all hosts and all of it at once, and nothing is changed on any host."""

    def test_all_failed_checks_of_all_hosts_are_told_together_and_no_host_is_changed(self, stack: Stack) -> None:
        stack.pulumi("destroy", "--yes")
        stack.change(quickly)
        before = files_on(stack, "bootstrap")
        for host in ("cloud-1", "edge-1"):
            ok(stack.lab.exec(host, "mv", "/usr/sbin/nft", "/usr/sbin/nft.away"))
        ok(stack.lab.exec("edge-1", "systemd-run", "--unit=taken", "python3", "-m", "http.server", "11010"))
        try:
            told = failed(stack, "up", "--yes", "--skip-preview")
        finally:
            for host in ("cloud-1", "edge-1"):
                ok(stack.lab.exec(host, "mv", "/usr/sbin/nft.away", "/usr/sbin/nft"))
            ok(stack.lab.exec("edge-1", "systemctl", "stop", "taken"))
        for host in ("cloud-1", "edge-1"):
            refusal = told_by_checks(told, host)
            assert f"{host}: this host can't take part yet; nothing was changed on it:" in refusal
            assert "- the command nft is missing" in refusal
        assert "- TCP port 11010, which EasyTier needs, is taken by another program" in told_by_checks(told, "edge-1")
        assert "11010" not in told_by_checks(told, "cloud-1")
        assert "Traceback" not in told
        assert files_on(stack, "bootstrap") - before == set()
        for host in ("cloud-1", "edge-1"):
            assert stack.lab.exec(host, "ls", "/opt", "/run", "/tmp").stdout.count("rlinf-cloud-edge") == 0
            assert stack.lab.exec(host, "ls", "/tmp").stdout.count("tmp.") == 0
        assert {name for name in recorded(stack) if name.startswith(HOSTS)} == {*HOSTS, "bootstrap-check"}

    def test_a_corrupt_download_is_refused_and_leaves_nothing(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            quickly(cluster)
            cluster["overlay"]["easytier"]["sha256"]["x86_64"] = "0" * 64

        stack.change(edit)
        told = failed(stack, "up", "--yes", "--skip-preview")
        assert {f"{host}-check" for host in HOSTS} <= recorded(stack), "what was put right is still refused"
        assert "edge-1: EasyTier 2.6.4 from http://203.0.113.80/" in told
        assert f"and the settings say {'0' * 64}; nothing of it was used" in told
        assert stack.lab.exec("edge-1", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1


class TestAnUpdateThatFails:
    """The host goes back to what it was, and the next `up` goes on."""

    def test_the_next_up_goes_on_where_the_failed_ones_stopped(self, stack: Stack) -> None:
        stack.change(quickly)
        assert "created" in stack.up()

    @pytest.mark.long
    def test_a_wrong_secret_on_one_host_names_it_and_the_cluster_stays_whole(self, stack: Stack) -> None:
        secret = stack.pulumi("config", "get", "networkSecret").strip()
        stack.pulumi("config", "set", "--secret", "networkSecret", stdin="not-the-secret-of-the-others")
        edge = next(
            resource["urn"]
            for resource in json.loads(stack.pulumi("stack", "export"))["deployment"]["resources"]
            if resource["urn"].endswith("::edge-1-overlay")
        )
        told = failed(stack, "up", "--yes", "--skip-preview", "--target", edge)
        assert "edge-1: no payload passes from 10.10.0.11 to the bootstrap 10.10.0.1" in told
        assert "the network secret or the network name here is not the one it runs with" in told
        assert "not-the-secret" not in told
        stack.pulumi("config", "set", "--secret", "networkSecret", stdin=secret)
        before = service_pids(stack, "edge-1")
        assert "unchanged" in stack.up()
        # Nothing was to do, so the host must be back by itself.
        ok(stack.lab.exec("edge-1", "ping", "-c", "1", "-W", "10", "10.10.0.1"))
        assert service_pids(stack, "edge-1") == before

    @pytest.mark.long
    def test_a_new_secret_reaches_every_host(self, stack: Stack) -> None:
        stack.pulumi("config", "set", "--secret", "networkSecret", stdin="another-secret-for-everyone")
        assert "updated" in stack.up()
        for host in HOSTS:
            pid = service_pids(stack, host)["rlinf-easytier.service"]
            environment = ok(stack.lab.exec(host, "cat", f"/proc/{pid}/environ")).split("\0")
            assert "ET_NETWORK_SECRET=another-secret-for-everyone" in environment


@pytest.mark.long
class TestDestroyWithAHostThatIsGone:
    """It ends in bounded time, names the host, and passes once the host is back. Runs last."""

    def test_it_names_the_host_and_goes_on_when_that_is_back(self, stack: Stack) -> None:
        edge = stack.lab.lab.host("edge-1")
        faults.stop_host(stack.lab.lab, edge)
        started = time.monotonic()
        told = failed(stack, "destroy", "--yes")
        assert time.monotonic() - started < 120
        assert "command:remote:Command (edge-1-ray):" in told
        assert "failed attempts" in told or "deadline exceeded" in told
        assert "edge-1-ray" in recorded(stack)
        faults.start_host(stack.lab.lab, edge)
        stack.pulumi("destroy", "--yes")
        assert recorded(stack) == set()
        assert stack.lab.exec("edge-1", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1
