"""Hosts whose owners run a join script: some that we log in to afterwards, over the overlay, and one that we never do.

One cluster serves all tests of this module, in the order they stand. Its edges:

- edge-1: logged in to through the bootstrap, as a user with sudo; its Ray is in RLinf's environment.
- edge-2, edge-4: `join: overlay`; their routers let nobody in. edge-4 is a container without systemd, and its Ray is in
  the environment that a command activates.
- edge-3: `join: script`; nobody of ours may log in at all.
- edge-5: `join: script`, in a container that was started without /dev/net/tun: it never joins.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

from lab.paths import Cache
from lab.polling import wait_for
from lab.rlinf_env import build
from lab.stack import Edit, Stack
from tests.lab.cluster_fixtures import (
    assert_as_before,
    lab_with_stack,
    ok,
    ray_python,
    raylet_environment,
    service_pids,
)
from tests.lab.join_fixtures import (
    RLINF_VENV,
    as_it_was,
    join_scripts,
    joining,
    let_nobody_in,
    nodes_table,
    run_as_owner,
    without,
)

pytestmark = pytest.mark.long  # five edges

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2", "edge-3", "edge-4")
JOINS = {"edge-2": "overlay", "edge-3": "script", "edge-4": "overlay"}
BROKEN = "edge-5"
ACTIVATED = "edge-4"


def activating(edit: Edit) -> Edit:
    """The same, with the Ray of edge-4 in the environment that a command activates."""

    def both(cluster: dict[str, Any]) -> None:
        edit(cluster)
        (edge,) = (edge for edge in cluster["edges"] if edge["name"] == ACTIVATED)
        edge["ray"] = {"activate": f"source {RLINF_VENV}/bin/activate"}

    return both


PENDING = activating(joining(JOINS | {BROKEN: "script"}))
LOOKING_AGAIN = activating(joining(JOINS, repair="look"))
JOINED = activating(joining(JOINS, joined=True))
JOINED_WITH_ANOTHER_MTU = activating(joining(JOINS, joined=True, mtu=1300))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    cache = Cache.from_environment()
    build(cache.rlinf, cache.uv)
    folder = tmp_path_factory.mktemp("project")
    with lab_with_stack(folder, "-join", edges=5, kinds={"edge-4": "container", BROKEN: "container-no-tun"}) as stack:
        let_nobody_in(stack, 2, 3, 4, 5)
        ok(stack.lab.exec("edge-3", "rm", "/home/debian/.ssh/authorized_keys"))
        stack.change(PENDING)
        yield stack


@pytest.fixture(scope="module")
def before(stack: Stack) -> dict[str, tuple[set[str], str]]:
    """Files and accounts of each host before anything was done to it."""
    return {host: as_it_was(stack, host) for host in (*HOSTS, BROKEN)}


@pytest.fixture(scope="module")
def printed(stack: Stack, before: dict[str, tuple[set[str], str]]) -> str:
    """What the first `pulumi up` printed."""
    return stack.up()


@pytest.fixture(scope="module")
def scripts(stack: Stack, printed: str) -> dict[str, str]:
    """The join scripts, as the operator reads them."""
    assert printed
    return join_scripts(stack)


@pytest.mark.usefixtures("printed")
class TestBeforeTheyHaveJoined:
    """The cluster stands without them, and says so; their scripts are there."""

    def test_up_passes_and_says_what_to_do(self, stack: Stack, printed: str) -> None:
        for host in (*JOINS, BROKEN):
            assert f"{host} has not joined yet" in printed
            assert nodes_table(stack)[host]["state"] == "pending"
        assert nodes_table(stack)["edge-3"]["reached"] == "join: script"

    def test_the_scripts_are_secret(self, stack: Stack, scripts: dict[str, str]) -> None:
        assert set(scripts) == {*JOINS, BROKEN}
        assert "NETWORK_SECRET" not in stack.pulumi("stack", "output", "--json") + stack.pulumi("stack", "export")

    def test_a_second_up_changes_nothing(self, stack: Stack) -> None:
        assert set(json.loads(stack.pulumi("preview", "--json"))["changeSummary"]) == {"same"}


class TestRefusals:
    """A script that can't do its work says why and what to do, and leaves nothing that was not there."""

    def test_without_root(self, stack: Stack, scripts: dict[str, str]) -> None:
        done = stack.lab.exec("edge-3", "bash", "-s", user="debian", stdin=scripts["edge-3"])
        assert (done.returncode, done.stderr) == (1, "edge-3: this needs root: run it with sudo, or as root\n")

    def test_help_needs_no_root(self, stack: Stack, scripts: dict[str, str]) -> None:
        told = ok(stack.lab.exec("edge-3", "bash", "-s", "--", "--help", user="debian", stdin=scripts["edge-3"]))
        assert "usage: sudo bash join-edge-3.sh" in told
        assert "It then runs Ray, rank 3. Nobody logs in." in told

    def test_without_the_tun_device_and_on_another_processor(
        self, stack: Stack, scripts: dict[str, str], before: dict[str, tuple[set[str], str]]
    ) -> None:
        uname = "/usr/local/bin/uname"
        code = '[ "$1" = -m ] && exec echo armv7l; exec /usr/bin/uname "$@"'
        ok(stack.lab.exec(BROKEN, "sh", "-c", f"cat >{uname}; chmod +x {uname}", stdin=f"#!/bin/sh\n{code}\n"))
        done = run_as_owner(stack, BROKEN, scripts[BROKEN])
        ok(stack.lab.exec(BROKEN, "rm", uname))
        assert done.returncode == 1
        assert "its processor is armv7l; EasyTier and Ray are installed for x86_64 and aarch64 only" in done.stderr
        assert "/dev/net/tun is missing" in done.stderr
        assert "Put right what is named above and run this again" in done.stderr
        assert_as_before(stack, BROKEN, before[BROKEN])

    def test_where_the_mirror_is_not_reached(
        self, stack: Stack, scripts: dict[str, str], before: dict[str, tuple[set[str], str]]
    ) -> None:
        with without(stack, "edge-3", "203.0.113.80"):
            done = run_as_owner(stack, "edge-3", scripts["edge-3"])
        assert done.returncode == 1
        assert "EasyTier 2.6.4 can't be downloaded from http://203.0.113.80/" in done.stderr
        assert_as_before(stack, "edge-3", before["edge-3"])

    def test_where_the_bootstrap_is_not_reached_it_can_be_run_again_or_undone(
        self, stack: Stack, scripts: dict[str, str], before: dict[str, tuple[set[str], str]]
    ) -> None:
        with without(stack, "edge-2", "203.0.113.5", "203.0.113.10"):
            done = run_as_owner(stack, "edge-2", scripts["edge-2"])
        assert done.returncode == 1
        assert "tcp://203.0.113.5:11010 does not answer: open TCP and UDP port 11010 there" in done.stderr
        assert "--down undoes what was done so far" in done.stderr
        ok(run_as_owner(stack, "edge-2", scripts["edge-2"], "--down"))
        assert_as_before(stack, "edge-2", before["edge-2"])


class TestTheScripts:
    """They need nothing but root."""

    @pytest.mark.parametrize("host", JOINS)
    def test_the_owner_runs_it_and_the_host_joins(self, stack: Stack, scripts: dict[str, str], host: str) -> None:
        done = run_as_owner(stack, host, scripts[host])
        assert done.returncode == 0, done.stderr
        assert f'Tell the operator: "{host} has joined"' in done.stderr

    @pytest.mark.parametrize("host", JOINS)
    def test_again_it_restarts_nothing(self, stack: Stack, scripts: dict[str, str], host: str) -> None:
        pids = service_pids(stack, host)
        ok(run_as_owner(stack, host, scripts[host]))
        assert service_pids(stack, host) == pids

    @pytest.mark.parametrize("host", JOINS)
    def test_easytier_listens_for_nobody(self, stack: Stack, host: str) -> None:
        assert ":11010 " not in ok(stack.lab.exec(host, "ss", "-Hltnu"))

    def test_the_gate_counts_a_host_that_is_there_already(self, stack: Stack) -> None:
        stack.change(LOOKING_AGAIN)
        stack.up()
        states = {host: row["state"] for host, row in nodes_table(stack).items() if host in JOINS}
        assert states == {"edge-2": "pending", "edge-3": "joined", "edge-4": "pending"}


@pytest.mark.usefixtures("printed")
class TestAfterTheyHaveJoined:
    """They are hosts like any other."""

    def test_the_gate_passes_with_all(self, stack: Stack) -> None:
        stack.change(JOINED)
        stack.up()
        states = {host: row["state"] for host, row in nodes_table(stack).items() if host in JOINS}
        assert states == dict.fromkeys(JOINS, "joined")
        code = (
            "import ray; ray.init('auto', logging_level=40); "
            "print(sorted(n['NodeManagerAddress'] for n in ray.nodes() if n['Alive']))"
        )
        told = ray_python(stack, "cloud-1", code).splitlines()[-1]
        assert told == str(["10.10.0.10", "10.10.0.11", "10.10.0.12", "10.10.0.13", "10.10.0.14"])

    def test_ray_runs_from_the_environment_that_each_host_names(self, stack: Stack) -> None:
        code = "import sys; print(sys.prefix)"
        for host in ("edge-1", ACTIVATED):
            assert ray_python(stack, host, code) == f"{RLINF_VENV}\n"
            assert raylet_environment(stack, host)["PATH"].startswith(f"{RLINF_VENV}/bin:")
        for host in {"cloud-1", *JOINS} - {ACTIVATED}:
            assert ray_python(stack, host, code).startswith("/opt/rlinf-cloud-edge/ray-")

    def test_again_there_are_no_changes(self, stack: Stack) -> None:
        assert set(json.loads(stack.pulumi("preview", "--json"))["changeSummary"]) == {"same"}
        assert "unchanged" in stack.up()

    def test_a_changed_setting_is_in_effect_over_the_overlay_itself(self, stack: Stack) -> None:
        stack.change(JOINED_WITH_ANOTHER_MTU)
        stack.up()
        for host in ("edge-2", "edge-4"):
            assert " mtu 1280 " in ok(stack.lab.exec(host, "ip", "link", "show", "dev", "et0"))

    def test_a_new_secret_makes_former_scripts_useless_and_owners_run_new_ones(
        self, stack: Stack, scripts: dict[str, str]
    ) -> None:
        stack.change(joining(JOINS))
        stack.pulumi("config", "set", "--secret", "networkSecret", stdin="another-secret-of-the-network")
        stack.up()
        done = run_as_owner(stack, "edge-3", scripts["edge-3"])
        assert done.returncode == 1
        assert "Ask the operator for a new join script." in done.stderr
        scripts |= join_scripts(stack)
        for host in JOINS:
            ok(run_as_owner(stack, host, scripts[host]))
        stack.change(JOINED)
        stack.up()
        assert {nodes_table(stack)[host]["state"] for host in JOINS} == {"joined"}

    @pytest.mark.parametrize("host", JOINS)
    def test_status_says_what_runs(self, stack: Stack, scripts: dict[str, str], host: str) -> None:
        assert "easytier active\nray active\n" in ok(run_as_owner(stack, host, scripts[host], "--status"))


class TestDestroy:
    """Runs last: nothing is left on a host that we log in to; where we don't, the owner's script removes it."""

    def test_nothing_of_ours_is_left(
        self, stack: Stack, scripts: dict[str, str], before: dict[str, tuple[set[str], str]]
    ) -> None:
        started = time.monotonic()
        stack.pulumi("destroy", "--yes")
        assert time.monotonic() - started < 120
        for host in ("edge-2", "edge-4"):
            assert wait_for(lambda host=host: not left_over(stack, host) or None, 20), left_over(stack, host)
            assert "debian@notty" not in ok(stack.lab.exec(host, "ps", "axww", "-o", "args")), "a login is left open"
        for host in HOSTS:
            if host == "edge-3":
                ok(run_as_owner(stack, host, scripts[host], "--down"))
            assert_as_before(stack, host, before[host])


def left_over(stack: Stack, host: str) -> str:
    """Files of ours that a removal is still to remove."""
    return stack.lab.exec(
        host, "sh", "-c", "ls -d /run/rlinf* /opt/rlinf-* /etc/rlinf-* /var/lib/rlinf-* 2>/dev/null"
    ).stdout
