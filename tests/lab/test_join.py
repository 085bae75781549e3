"""Hosts whose owners run a join script: one that we log in to afterwards, over the overlay, and one that we never do.

One cluster serves all tests of this module, in the order they stand. Its edges:

- edge-1: logged in to through the bootstrap.
- edge-2: `join: overlay`; its router lets nobody in, the bootstrap neither.
- edge-3: `join: script`; nobody of ours may log in at all.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Generator
from typing import Any

import pytest

from lab import network, topology
from lab.polling import wait_for
from lab.stack import Stack
from tests.lab.cluster_fixtures import (
    accounts_on,
    assert_as_before,
    files_on,
    lab_with_stack,
    ok,
    ray_python,
    service_pids,
)

pytestmark = pytest.mark.long

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2", "edge-3")
JOINING = ("edge-2", "edge-3")
NODES = ["10.10.0.10", "10.10.0.11", "10.10.0.12", "10.10.0.13"]


def joining(cluster: dict[str, Any]) -> None:
    """An edit of the lab's settings: two edges join by a script."""
    for edge, join in zip(cluster["edges"][1:], ("overlay", "script"), strict=True):
        ssh = edge.pop("ssh")
        edge["join"] = join
        if join == "overlay":
            edge["ssh"] = {"host_key": ssh["host_key"]}


def joined(cluster: dict[str, Any]) -> None:
    """The same, once the owners have run their scripts."""
    joining(cluster)
    for edge in cluster["edges"][1:]:
        edge["joined"] = True


def scripts(stack: Stack) -> dict[str, str]:
    """The join scripts, as the operator reads them."""
    return json.loads(stack.pulumi("stack", "output", "join_scripts", "--show-secrets", "--json"))


def run_as_owner(stack: Stack, host: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What comes of a join script that the owner of a host runs there, from a file in his home."""
    file = f"/home/debian/join-{host}.sh"
    ok(stack.lab.exec(host, "sh", "-c", f"umask 077; cat >{file}", user="debian", stdin=script))
    try:
        return stack.lab.exec(host, "sudo", "-n", "bash", file, *options, user="debian", limit=300)
    finally:
        ok(stack.lab.exec(host, "rm", file))


def table(stack: Stack) -> dict[str, dict[str, Any]]:
    """Host name to its row of the output `nodes`."""
    return {row["name"]: row for row in stack.outputs()["nodes"]}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-join", edges=3) as stack:
        for number in (2, 3):
            ruleset = topology.router_namespace(stack.lab.name, number)
            rule = (
                f"insert rule inet router forward iifname wan ip saddr {topology.BOOTSTRAP_ADDRESS} tcp dport 22 drop"
            )
            network.run_in(ruleset, "nft", "-f", "-", stdin=rule)
        ok(stack.lab.exec("edge-3", "mv", "/home/debian/.ssh/authorized_keys", "/root/"))
        stack.change(joining)
        yield stack


@pytest.fixture(scope="module")
def before(stack: Stack) -> dict[str, tuple[set[str], str]]:
    """Files and accounts of each host before anything was done to it."""
    return {host: (files_on(stack, host), accounts_on(stack, host)) for host in HOSTS}


@pytest.fixture(scope="module")
def printed(stack: Stack, before: dict[str, tuple[set[str], str]]) -> str:
    """What the first `pulumi up` printed."""
    return stack.up()


@pytest.mark.usefixtures("printed")
class TestBeforeTheyHaveJoined:
    """The cluster stands without them, and says so; their scripts are there."""

    def test_up_passes_and_says_what_to_do(self, stack: Stack, printed: str) -> None:
        for host in JOINING:
            assert f"{host} has not joined yet" in printed
            assert table(stack)[host]["state"] == "pending"
        assert table(stack)["edge-3"]["reached"] == "join: script"

    def test_the_scripts_are_secret(self, stack: Stack) -> None:
        assert "NETWORK_SECRET" not in stack.pulumi("stack", "output", "--json") + stack.pulumi("stack", "export")
        assert set(scripts(stack)) == set(JOINING)

    def test_a_second_up_changes_nothing(self, stack: Stack) -> None:
        assert set(json.loads(stack.pulumi("preview", "--json"))["changeSummary"]) == {"same"}


@pytest.mark.usefixtures("printed")
class TestTheScripts:
    """They need nothing but root, and say what is missing."""

    def test_help_needs_no_root(self, stack: Stack) -> None:
        told = ok(stack.lab.exec("edge-3", "bash", "-s", "--", "--help", user="debian", stdin=scripts(stack)["edge-3"]))
        assert "usage: sudo bash join-edge-3.sh" in told
        assert "It then runs Ray, rank 3. Nobody logs in." in told

    def test_without_root_it_says_so(self, stack: Stack) -> None:
        done = stack.lab.exec("edge-3", "bash", "-s", user="debian", stdin=scripts(stack)["edge-3"])
        assert (done.returncode, done.stderr) == (1, "edge-3: this needs root: run it with sudo, or as root\n")

    @pytest.mark.parametrize("host", JOINING)
    def test_the_owner_runs_it_and_the_host_joins(self, stack: Stack, host: str) -> None:
        done = run_as_owner(stack, host, scripts(stack)[host])
        assert done.returncode == 0, done.stderr
        assert f'Tell the operator: "{host} has joined"' in done.stderr

    @pytest.mark.parametrize("host", JOINING)
    def test_again_it_restarts_nothing(self, stack: Stack, host: str) -> None:
        pids = service_pids(stack, host)
        assert run_as_owner(stack, host, scripts(stack)[host]).returncode == 0
        assert service_pids(stack, host) == pids

    @pytest.mark.parametrize("host", JOINING)
    def test_no_port_is_open_to_other_networks_but_the_hosts_own_sshd(self, stack: Stack, host: str) -> None:
        listening = ok(stack.lab.exec(host, "ss", "-Hltnu"))
        ours = {line.split()[4] for line in listening.splitlines()}
        assert not {address for address in ours if address.endswith(":11010")}

    def test_ray_of_a_script_is_told_from_others_by_the_gate(self, stack: Stack) -> None:
        stack.change(lambda cluster: (joining(cluster), cluster.update(repair="look"))[0])
        stack.up()
        assert table(stack)["edge-3"]["state"] == "joined"
        assert table(stack)["edge-2"]["state"] == "pending"


@pytest.mark.usefixtures("printed")
class TestAfterTheyHaveJoined:
    """They are hosts like any other."""

    def test_the_gate_passes_with_all(self, stack: Stack) -> None:
        stack.change(joined)
        stack.up()
        assert {host: table(stack)[host]["state"] for host in JOINING} == dict.fromkeys(JOINING, "joined")
        code = (
            "import ray; ray.init('auto', logging_level=40); "
            "print(sorted(n['NodeManagerAddress'] for n in ray.nodes() if n['Alive']))"
        )
        assert ray_python(stack, "cloud-1", code).splitlines()[-1] == str(NODES)

    def test_again_there_are_no_changes(self, stack: Stack) -> None:
        assert set(json.loads(stack.pulumi("preview", "--json"))["changeSummary"]) == {"same"}
        assert "unchanged" in stack.up()

    @pytest.mark.parametrize("host", JOINING)
    def test_status_says_what_runs(self, stack: Stack, host: str) -> None:
        told = ok(run_as_owner(stack, host, scripts(stack)[host], "--status"))
        assert "easytier active\nray active\n" in told


class TestDestroy:
    """Runs last: nothing is left on a host that we log in to; where we don't, the owner's script removes it."""

    def test_nothing_of_ours_is_left(self, stack: Stack, before: dict[str, tuple[set[str], str]]) -> None:
        script = scripts(stack)["edge-3"]
        started = time.monotonic()
        stack.pulumi("destroy", "--yes")
        assert time.monotonic() - started < 120
        assert wait_for(lambda: not left_over(stack, "edge-2") or None, 60), left_over(stack, "edge-2")
        for host in ("bootstrap", "cloud-1", "edge-1", "edge-2"):
            assert_as_before(stack, host, before[host])
        assert run_as_owner(stack, "edge-3", script, "--down").returncode == 0
        assert_as_before(stack, "edge-3", before["edge-3"])


def left_over(stack: Stack, host: str) -> str:
    """Files of ours that a removal is still to remove."""
    found = stack.lab.exec(host, "sh", "-c", "ls -d /run/rlinf* /opt/rlinf-* /etc/rlinf-* /var/lib/rlinf-* 2>/dev/null")
    return found.stdout
