"""An edge that is taken out takes nothing with it that is still of use: a new network secret, and it is out.

The edge plays one that was stolen: nobody logs in to it any more, and all that it had still runs there.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

from lab.polling import wait_for
from lab.stack import Stack
from tests.lab.cluster_fixtures import lab_with_stack, ok, service_pids
from tests.lab.fault_fixtures import judge_of

pytestmark = pytest.mark.long  # a cluster of its own

STOLEN = "edge-2"
OTHERS = ("bootstrap", "cloud-1", "edge-1")
OVERLAY = {"bootstrap": "10.10.0.1", "cloud-1": "10.10.0.10", "edge-1": "10.10.0.11", STOLEN: "10.10.0.12"}
PASSES = '. /opt/rlinf-cloud-edge/libexec/lib.sh; payload_passes "$1" 11009'
TOKEN = "/etc/rlinf-cloud-edge/ray.token"
WARNING = f"no longer in the cluster, but with its network secret: {STOLEN}."


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-revoke", edges=2) as stack:
        stack.up()
        yield stack


def stolen(cluster: dict[str, Any]) -> None:
    cluster["edges"][1]["lost"] = True


def removed(cluster: dict[str, Any]) -> None:
    cluster["edges"].pop()


def passes(stack: Stack, asker: str, asked: str) -> bool:
    """Whether 16 KiB come back from the echo service of that host on the overlay."""
    return stack.lab.exec(asker, "bash", "-c", PASSES, "_", OVERLAY[asked]).returncode == 0


def driver(stack: Stack, token: str) -> str:
    """What a driver on another edge, which is in the overlay, gets from Ray with a token."""
    python = ok(stack.lab.exec("edge-1", "bash", "-c", "echo /opt/rlinf-cloud-edge/ray-*/bin/python")).strip()
    code = (
        "import ray; ray.init('10.10.0.10:6379', log_to_driver=False); "
        "print('ran', ray.get(ray.remote(num_cpus=0)(lambda: 42).remote()))"
    )
    variables = ("RAY_AUTH_MODE=token", f"RAY_AUTH_TOKEN={token}")
    done = stack.lab.exec("edge-1", "env", *variables, "timeout", "60", python, "-c", code, user="debian")
    return done.stdout + done.stderr


class TestStolenEdge:
    """In the order of the procedure in SECURITY.md."""

    def test_without_a_new_secret_it_is_still_inside_and_up_warns(self, stack: Stack) -> None:
        stack.change(stolen)
        assert WARNING in stack.up()
        for host in OTHERS:
            assert wait_for(lambda host=host: passes(stack, STOLEN, host) or None, 20), "else the rest shows nothing"
        assert "ran 42" in driver(stack, ok(stack.lab.exec(STOLEN, "cat", TOKEN)))

    def test_a_new_secret_puts_it_out_in_one_update(self, stack: Stack) -> None:
        before = service_pids(stack, STOLEN)
        stack.pulumi("config", "set", "--secret", "networkSecret", stdin="a-new-secret-that-the-stolen-one-lacks")
        assert "warning: no longer in the cluster" not in stack.up()
        assert judge_of(stack).whole == "2 of 2 nodes 0=10.10.0.10 1=10.10.0.11"
        assert service_pids(stack, STOLEN)["rlinf-easytier.service"] == before["rlinf-easytier.service"] != "0"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            assert [host for host in OTHERS if passes(stack, STOLEN, host) or passes(stack, host, STOLEN)] == []

    def test_its_token_is_of_no_use_even_inside(self, stack: Stack) -> None:
        told = driver(stack, ok(stack.lab.exec(STOLEN, "cat", TOKEN)))
        assert "ran" not in told.splitlines()
        assert "authenticat" in told.lower()
        assert "ran 42" in driver(stack, ok(stack.lab.exec("edge-1", "cat", TOKEN))), "else the test shows nothing"

    def test_its_entry_goes_without_a_login(self, stack: Stack) -> None:
        before = {host: service_pids(stack, host) for host in OTHERS}
        stack.change(removed)
        assert "warning: no longer in the cluster" not in stack.up()
        assert {host: service_pids(stack, host) for host in OTHERS} == before
        assert "unchanged" in stack.up()
