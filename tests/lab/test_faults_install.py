"""What goes wrong while `pulumi up` works: it says so, leaves nothing half done, and the next `up` goes on.

One lab with one edge takes one fault after the other, each on hosts that are as the last one left them.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from lab import faults, operator, world
from lab.polling import wait_for
from lab.stack import Stack
from tests.lab.cluster_fixtures import lab_with_stack, ok
from tests.lab.fault_fixtures import judge_of

pytestmark = pytest.mark.long  # each takes an update or two

HOSTS = ("bootstrap", "cloud-1", "edge-1")
UP = ("pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--color", "never")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-install", edges=1) as stack:
        stack.change(lambda cluster: cluster["ssh"].update(connect_timeout=60))
        yield stack


@contextmanager
def up_running(stack: Stack) -> Generator[subprocess.Popen[str], None, None]:
    """`pulumi up` while it works; killed at the end of the block where it still does."""
    # Every command on the way replaces itself by the next, so the process is Pulumi itself.
    running = subprocess.Popen(
        operator.command(stack.lab.name, UP), cwd=stack.project, env={**stack.lab.env(), "PULUMI_STACK": "lab"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def there(stack: Stack, host: str, path: str) -> bool | None:
    return stack.lab.exec(host, "test", "-e", path).returncode == 0 or None


def installed(stack: Stack, host: str) -> list[str]:
    """What of ours is on a host."""
    paths = ("/opt/rlinf-cloud-edge", "/etc/rlinf-cloud-edge", "/var/lib/rlinf-cloud-edge", "/run/rlinf-cloud-edge")
    return [path for path in paths if there(stack, host, path)]


def recorded(stack: Stack) -> list[str]:
    """Names of the resources in the state, those of twice twice."""
    state = json.loads(stack.pulumi("stack", "export"))
    return sorted(resource["urn"].rpartition("::")[2] for resource in state["deployment"].get("resources", []))


def pending(stack: Stack) -> list[str]:
    """What Pulumi holds for interrupted."""
    state = json.loads(stack.pulumi("stack", "export"))
    return [operation["resource"]["urn"] for operation in state["deployment"].get("pending_operations", [])]


class TestDownloads:
    """A host that can't get or keep its programs says why, and has nothing of ours."""

    def test_a_dead_mirror(self, stack: Stack) -> None:
        lab = stack.lab.lab
        lab.state().processes["mirror"].kill()
        try:
            done = stack.run("up", "--yes", "--skip-preview")
        finally:
            world.up(lab, None, None)
        assert done.returncode != 0
        assert "edge-1: EasyTier 2.6.4 can't be downloaded from http://203.0.113.80/" in done.stdout
        assert all(installed(stack, host) == [] for host in HOSTS)

    def test_a_disk_that_fills_up_during_the_installation(self, stack: Stack) -> None:
        lab = stack.lab.lab
        edge = lab.host("edge-1")
        with up_running(stack) as running:
            assert wait_for(lambda: there(stack, edge.name, "/opt/rlinf-cloud-edge/uv"), 120)
            faults.fill_disk(lab, edge, 4)
            try:
                told, _ = running.communicate(timeout=240)
            finally:
                faults.unfill_disk(lab, edge)
        assert running.returncode != 0
        assert "edge-1: the disk that /opt/rlinf-cloud-edge is on is full; make room" in told
        assert "edge-1-prepare" not in recorded(stack)
        assert installed(stack, edge.name) == []


class TestLateSshd:
    """A host that comes up while the others are already at work is waited for."""

    def test_the_next_up_goes_on_and_waits_twenty_seconds_for_sshd(self, stack: Stack) -> None:
        ok(stack.lab.exec("edge-1", "systemctl", "stop", "ssh.service"))
        ok(
            stack.lab.exec(
                "edge-1",
                "systemd-run",
                "--on-active=20",
                "--timer-property=AccuracySec=1s",
                "systemctl",
                "start",
                "ssh.service",
            )
        )
        started = time.monotonic()
        stack.up()
        assert time.monotonic() - started > 15
        assert judge_of(stack).whole == "2 of 2 nodes 0=10.10.0.10 1=10.10.0.11"


class TestTwoAtOnce:
    """A second `up` is refused while the first one works, and the first one is not disturbed."""

    def test_the_second_is_refused(self, stack: Stack) -> None:
        stack.change(lambda cluster: cluster.update(repair="two at once"))
        locks = stack.lab.lab.files.pulumi / ".pulumi" / "locks"
        with up_running(stack) as running:
            assert wait_for(lambda: any(locks.rglob("*.json")) or None, 30)
            second = stack.run("up", "--yes", "--skip-preview")
            told, _ = running.communicate(timeout=240)
        assert second.returncode != 0
        assert "the stack is currently locked by 1 lock(s)" in second.stdout + second.stderr
        assert running.returncode == 0, told


class TestKilled:
    """`up` may be killed anywhere: after `pulumi cancel`, the next one goes on, and nothing is doubled or lost."""

    # Where in its work: the host that is at it, and a file that is there from then on.
    POINTS = (
        ("bootstrap", "/opt/rlinf-cloud-edge/libexec/prepare.sh"),
        ("edge-1", "/opt/rlinf-cloud-edge/easytier/.sha256"),
        ("cloud-1", "/opt/rlinf-cloud-edge/uv"),
        ("edge-1", "/opt/rlinf-cloud-edge/ray-2.60.0-python-3.11/.complete"),
        ("bootstrap", "/etc/rlinf-cloud-edge/easytier.toml"),
        ("edge-1", "/etc/rlinf-cloud-edge/easytier.toml"),
        ("cloud-1", "/etc/rlinf-cloud-edge/ray.env"),
        ("cloud-1", "/var/lib/rlinf-cloud-edge/written/ray"),
        ("edge-1", "/etc/rlinf-cloud-edge/ray.env"),
        ("cloud-1", "/etc/rlinf-cloud-edge/rlinf/cluster.yaml"),
    )

    def kill(self, stack: Stack, with_signal: signal.Signals, host: str, path: str) -> None:
        """Kills an `up` as soon as it has got there, from wherever the last one stopped."""
        if there(stack, host, path):
            # The last one got further than this: from the start, then.
            self.destroy(stack)
            assert not there(stack, host, path)
        with up_running(stack) as running:
            assert wait_for(lambda: there(stack, host, path) or running.poll() is not None or None, 240)
            ended = running.poll() is not None
            assert not ended, f"it ended before it was killed at {path} of {host}:\n{running.communicate()[0]}"
            running.send_signal(with_signal)
            running.communicate(timeout=240)
        assert running.returncode != 0, "it was done before it was killed"
        stack.run("cancel", "--yes")

    def destroy(self, stack: Stack) -> None:
        """Goes on first, so that all is recorded."""
        stack.up()
        stack.pulumi("destroy", "--yes")
        assert {host: installed(stack, host) for host in HOSTS} == {host: [] for host in HOSTS}

    @pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGKILL])
    def test_the_next_up_goes_on_from_each_of_ten_points(self, stack: Stack, with_signal: signal.Signals) -> None:
        stack.up()
        before = recorded(stack)
        stack.pulumi("destroy", "--yes")
        for point in self.POINTS:
            self.kill(stack, with_signal, *point)
        stack.up()
        assert judge_of(stack).whole == "2 of 2 nodes 0=10.10.0.10 1=10.10.0.11"
        assert recorded(stack) == before
        for host in HOSTS:
            assert len(ok(stack.lab.exec(host, "pgrep", "-x", "easytier-core")).split()) == 1
        for host in HOSTS[1:]:
            assert len(ok(stack.lab.exec(host, "pgrep", "-x", "raylet")).split()) == 1
        assert "unchanged" in stack.up()

    def test_destroy_after_an_interrupted_up_leaves_nothing(self, stack: Stack) -> None:
        stack.pulumi("destroy", "--yes")
        self.kill(stack, signal.SIGINT, "edge-1", "/etc/rlinf-cloud-edge/easytier.toml")
        stack.pulumi("destroy", "--yes")
        assert {host: installed(stack, host) for host in HOSTS} == {host: [] for host in HOSTS}

    def test_destroy_right_after_a_killed_up_leaves_nothing(self, stack: Stack) -> None:
        """Pulumi does not know of the commands that were at work, and these undo themselves."""
        self.kill(stack, signal.SIGKILL, "edge-1", "/opt/rlinf-cloud-edge/uv")
        stack.pulumi("destroy", "--yes")
        assert recorded(stack) == []
        clean = {host: list[str]() for host in HOSTS}
        assert wait_for(lambda: {host: installed(stack, host) for host in HOSTS} == clean or None, 180)

    def test_what_was_interrupted_is_forgotten_on_request(self, stack: Stack) -> None:
        self.kill(stack, signal.SIGKILL, "edge-1", "/opt/rlinf-cloud-edge/uv")
        assert pending(stack), "nothing was interrupted"
        stack.pulumi("refresh", "--yes", "--clear-pending-creates")
        assert not pending(stack)
        stack.up()
        assert judge_of(stack).whole == "2 of 2 nodes 0=10.10.0.10 1=10.10.0.11"
