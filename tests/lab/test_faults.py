"""What a cluster takes by itself: with nobody's help, every rank is back on its address, and the gate says so.

One cluster with two edges takes one fault after the other. The seconds that each took are printed at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

import pytest

from lab import faults
from lab.polling import wait_for
from lab.stack import Stack
from lab.topology import LabHost
from lab.world import Lab
from tests.lab.cluster_fixtures import lab_with_stack, ok, service_pids
from tests.lab.fault_fixtures import HEAD, Judge, changes, judge_of

pytestmark = pytest.mark.long  # each fault takes its time to heal

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2")
PASSES = '. /opt/rlinf-cloud-edge/libexec/lib.sh; payload_passes "$1" 11009'


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-faults", edges=2) as stack:
        stack.up()
        yield stack


@pytest.fixture(scope="module")
def judge(stack: Stack) -> Generator[Judge, None, None]:
    judge = judge_of(stack)
    yield judge
    print(
        "\nseconds to recover:", *(f"  {seconds:6.1f}  {fault}" for fault, seconds in judge.seconds.items()), sep="\n"
    )


@pytest.fixture
def lab(stack: Stack) -> Lab:
    return stack.lab.lab


@pytest.fixture
def edge(lab: Lab) -> LabHost:
    return lab.host("edge-1")


def payload_passes(stack: Stack, host: str, address: str) -> bool:
    """Whether 16 KiB come back from the echo service of that address on the overlay."""
    return stack.lab.exec(host, "bash", "-c", PASSES, "_", address).returncode == 0


def holds(seconds: float, what: Callable[[], bool]) -> bool:
    """Whether something is true all the time."""
    return wait_for(lambda: None if what() else True, seconds) is None


class TestProcesses:
    """A process that ends, however it ends, is started again, and no other host's is."""

    @pytest.mark.parametrize(
        "fault",
        [
            ("rlinf-easytier.service", "easytier-core", "KILL"),
            # EasyTier ends with 0 then, as it does where there is no network at boot.
            ("rlinf-easytier.service", "easytier-core", "TERM"),
            ("rlinf-ray.service", "raylet", "KILL"),
            # `ray start --block` takes that for one that was told to end, and would stay.
            ("rlinf-ray.service", "raylet", "TERM"),
        ],
        ids="-".join,
    )
    def test_it_is_back(self, stack: Stack, judge: Judge, lab: Lab, edge: LabHost, fault: tuple[str, str, str]) -> None:
        service, process, signal = fault
        before = {host: service_pids(stack, host) for host in HOSTS if host != edge.name}
        pid = service_pids(stack, edge.name)[service]
        faults.kill_process(lab, edge, process, whole_command=False, signal=signal)
        ended = time.monotonic()
        changes(lambda: service_pids(stack, edge.name)[service].strip("0"), pid, 60)
        judge.recovers(f"{process} of an edge ended by SIG{signal}", 150, ended)
        assert {host: service_pids(stack, host) for host in before} == before

    def test_the_head_without_its_gcs_server_is_a_new_head(self, stack: Stack, judge: Judge, lab: Lab) -> None:
        pid = service_pids(stack, HEAD)["rlinf-ray.service"]
        faults.kill_process(lab, lab.host(HEAD), "gcs_server", whole_command=False, signal="TERM")
        ended = time.monotonic()
        # It closes its port and hangs; the head's raylet gives it up after a minute.
        changes(lambda: service_pids(stack, HEAD)["rlinf-ray.service"].strip("0"), pid, 120)
        judge.recovers("gcs_server of the head ended by SIGTERM", 240, ended)

    def test_a_start_in_which_rays_agent_hangs_is_begun_anew(self, stack: Stack, judge: Judge, edge: LabHost) -> None:
        """As on a host that is too busy: the raylet gives up after 15 s, which Ray would notice after 150."""
        hang = "until pkill --signal=STOP --full '^[^ ]*python -u [^ ]*/dashboard/agent.py'; do sleep 0.05; done"
        ok(stack.lab.exec(edge.name, "bash", "-c", f"systemctl restart rlinf-ray; {hang}"))
        hung = time.monotonic()
        pid = service_pids(stack, edge.name)["rlinf-ray.service"]
        changes(lambda: service_pids(stack, edge.name)["rlinf-ray.service"].strip("0"), pid, 60)
        judge.recovers("an agent of Ray hangs while Ray starts on an edge", 150, hung)

    def test_a_stop_that_is_asked_for_is_quick_and_clean(self, stack: Stack, judge: Judge) -> None:
        for host in ("edge-1", HEAD):
            started = time.monotonic()
            ok(stack.lab.exec(host, "systemctl", "stop", "rlinf-ray"))
            assert time.monotonic() - started < 15, "it took the service's limit"
            result = ok(stack.lab.exec(host, "systemctl", "show", "--property=Result", "--value", "rlinf-ray"))
            assert result.strip() == "exit-code", "Ray, which ends with 1 when it is told to, was killed"
            assert stack.lab.exec(host, "pgrep", "--full", "watch-ray.sh").returncode == 1
        for host in (HEAD, "edge-1"):
            ok(stack.lab.exec(host, "systemctl", "start", "rlinf-ray"))
        judge.recovers("Ray stopped and started by hand, head and edge", 240)


class TestLink:
    """An edge whose cable was out comes back; the others don't notice."""

    def outage(self, stack: Stack, judge: Judge, lab: Lab, edge: LabHost, seconds: float) -> None:
        before = {host: service_pids(stack, host) for host in HOSTS if host != edge.name}
        faults.link_down(lab, edge)
        try:
            assert holds(seconds, lambda: payload_passes(stack, "edge-2", "10.10.0.10"))
        finally:
            faults.link_up(lab, edge)
        judge.recovers(f"cable of an edge out for {seconds:.0f} s", 150)
        assert {host: service_pids(stack, host) for host in before} == before

    def test_out_for_half_a_minute(self, stack: Stack, judge: Judge, lab: Lab, edge: LabHost) -> None:
        self.outage(stack, judge, lab, edge, 30)

    def test_out_for_five_minutes(self, stack: Stack, judge: Judge, lab: Lab, edge: LabHost) -> None:
        self.outage(stack, judge, lab, edge, 300)


class TestBootstrap:
    """Without the bootstrap, what edges and head send each other passes all the same; it comes back into its place."""

    def away(self, stack: Stack, judge: Judge, lab: Lab, seconds: float) -> None:
        bootstrap = lab.host("bootstrap")
        before = {host: service_pids(stack, host) for host in HOSTS[1:]}
        faults.stop_host(lab, bootstrap)
        try:
            assert holds(
                seconds, lambda: all(payload_passes(stack, host, "10.10.0.10") for host in ("edge-1", "edge-2"))
            )
            assert judge.ask() == judge.whole
        finally:
            faults.start_host(lab, bootstrap)
        booted = time.monotonic()
        assert wait_for(lambda: payload_passes(stack, "edge-1", "10.10.0.1") or None, 60)
        judge.recovers(f"bootstrap without power for {seconds:.0f} s", 60, booted)
        assert {host: service_pids(stack, host) for host in before} == before

    def test_away_for_fifteen_seconds(self, stack: Stack, judge: Judge, lab: Lab) -> None:
        self.away(stack, judge, lab, 15)

    def test_away_for_five_minutes(self, stack: Stack, judge: Judge, lab: Lab) -> None:
        self.away(stack, judge, lab, 300)


class TestReboots:
    """A host that boots joins the overlay, then Ray, with the rank and the address it had."""

    def test_an_edge_whose_overlay_device_comes_late(self, stack: Stack, judge: Judge, lab: Lab, edge: LabHost) -> None:
        folder = "/etc/systemd/system/rlinf-easytier.service.d"
        ok(stack.lab.exec(edge.name, "mkdir", folder))
        # The service is there at once, so that Ray is started; its device is not.
        core = "/opt/rlinf-cloud-edge/easytier/easytier-core"
        options = "--config-file /etc/rlinf-cloud-edge/easytier.toml --disable-env-parsing"
        late = f"[Service]\nExecStart=\nExecStart=/bin/sh -c 'sleep 20; exec {core} {options}'\n"
        ok(stack.lab.exec(edge.name, "tee", f"{folder}/late.conf", stdin=late))
        faults.reboot(lab, edge)
        judge.recovers("edge rebooted, its overlay device 20 s late", 150)
        told = ok(stack.lab.exec(edge.name, "journalctl", "--boot", "--unit=rlinf-ray", "--output=cat", "--no-pager"))
        ok(stack.lab.exec(edge.name, "rm", "-r", folder))
        assert "waiting for 10.10.0.11 on et0" in told
        assert told.count("Ray runtime started") == 1, "Ray was started more than once"

    def test_an_edge(self, stack: Stack, judge: Judge, lab: Lab, edge: LabHost) -> None:
        before = {host: service_pids(stack, host) for host in HOSTS if host != edge.name}
        faults.reboot(lab, edge)
        judge.recovers("edge rebooted", 150)
        assert {host: service_pids(stack, host) for host in before} == before

    def test_the_bootstrap(self, stack: Stack, judge: Judge, lab: Lab) -> None:
        before = {host: service_pids(stack, host) for host in HOSTS[1:]}
        faults.reboot(lab, lab.host("bootstrap"))
        booted = time.monotonic()
        assert wait_for(lambda: payload_passes(stack, "edge-1", "10.10.0.1") or None, 60)
        judge.recovers("bootstrap rebooted", 150, booted)
        assert {host: service_pids(stack, host) for host in before} == before

    def test_the_head(self, stack: Stack, judge: Judge, lab: Lab) -> None:
        faults.reboot(lab, lab.host(HEAD))
        judge.recovers("head rebooted", 240)


class TestAfterwards:
    """Nothing of all that is left, and Pulumi has nothing to do. Runs last."""

    def test_each_service_runs_once(self, stack: Stack, judge: Judge) -> None:
        for host in HOSTS:
            assert len(ok(stack.lab.exec(host, "pgrep", "-x", "easytier-core")).split()) == 1
        for host in HOSTS[1:]:
            assert len(ok(stack.lab.exec(host, "pgrep", "-x", "raylet")).split()) == 1

    def test_the_next_up_changes_nothing(self, stack: Stack, judge: Judge) -> None:
        assert "unchanged" in stack.up()
        assert judge.ask() == judge.whole
