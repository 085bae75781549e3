"""Labs come and go without a trace, however their commands end. Each test makes small labs of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from lab import cgroups, keys, network, topology, world
from lab.paths import CLONE, Cache
from lab.polling import wait_for
from lab.processes import Process
from lab.session import name_for_tests, running, take_down_orphans
from lab.world import Lab

pytestmark = pytest.mark.root


@pytest.fixture
def small() -> Generator[Lab, None, None]:
    """The name of a lab that is not up, and nothing is left of it afterwards."""
    take_down_orphans()
    lab = Lab(Cache.from_environment(), name_for_tests("-small"))
    yield lab
    world.down(lab)
    assert_nothing_left(lab)


def start(lab: Lab, *command: str) -> subprocess.Popen[str]:
    """Starts one of the lab's commands, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "lab", *command, "--name", lab.name],
        cwd=CLONE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], limit: float = 120) -> str:
    """Waits for a command that must succeed; what it printed."""
    output = process.communicate(timeout=limit)[0]
    assert process.returncode == 0, output
    return output


def up(lab: Lab, *options: str) -> str:
    """Brings a lab up, of a bootstrap and a cloud node alone unless told otherwise; what was printed."""
    return finish(start(lab, "up", *(options or ("--edges", "0"))))


def assert_nothing_left(lab: Lab) -> None:
    """Checks, by other means than the lab's own where there are any, that nothing is left of a lab."""
    assert world.remains(lab) == []
    assert not [entry for entry in Path("/run/netns").glob("*") if topology.is_namespace_of(lab.name, entry.name)]
    assert lab.name not in Path("/proc/self/mounts").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/*/{lab.name}"))
    assert not Path("/run/rlinf-cloud-edge", lab.name).exists()
    assert not [
        command.parent.name
        for command in Path("/proc").glob("[0-9]*/cmdline")
        if f"{lab.name}-bootstrap" in _read(command) or str(lab.files.root) in _read(command)
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def when_state_is_written(lab: Lab) -> bool:
    return lab.files.state.exists()


def when_a_router_is_made(lab: Lab) -> bool:
    return network.path(topology.router_namespace(lab.name, 1)).exists()


def when_a_disk_is_made(lab: Lab) -> bool:
    return (lab.files.host("bootstrap") / "disk.img").exists()


def when_a_host_boots(lab: Lab) -> bool:
    return lab.files.console("bootstrap").exists()


def when_it_is_up(lab: Lab) -> bool:
    state = lab.files.load()
    return state is not None and state.phase == "up"


MOMENTS = [
    when_a_router_is_made,
    when_a_host_boots,
    *(
        pytest.param(moment, marks=pytest.mark.long)
        for moment in (when_state_is_written, when_a_disk_is_made, when_it_is_up)
    ),
]
SIGNALS = [signal.SIGINT, *(pytest.param(number, marks=pytest.mark.long) for number in (signal.SIGTERM, signal.SIGHUP))]


class TestCutOff:
    """A lab that was cut off is cleaned up by the next command, whatever it had come to."""

    @pytest.mark.parametrize("moment", MOMENTS)
    def test_down_after_a_killed_up_leaves_nothing(self, small: Lab, moment: Callable[[Lab], bool]) -> None:
        process = start(small, "up")
        assert wait_for(lambda: moment(small) or None, 60)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        finish(start(small, "down"))
        assert_nothing_left(small)

    def test_up_after_a_killed_up_makes_a_whole_lab(self, small: Lab) -> None:
        process = start(small, "up")
        assert wait_for(lambda: when_a_host_boots(small) or None, 60)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert "Cleaning up what is left" in up(small, "--edges", "1")
        assert small.state().phase == "up"

    @pytest.mark.parametrize("number", SIGNALS)
    def test_an_interrupted_up_cleans_up_and_says_so_by_its_exit_code(self, small: Lab, number: signal.Signals) -> None:
        process = start(small, "up")
        assert wait_for(lambda: when_a_host_boots(small) or None, 60)
        os.kill(process.pid, number)
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 128 + number, output
        assert f"interrupted ({number.name})" in output
        assert_nothing_left(small)

    def test_down_after_all_processes_were_killed_leaves_nothing(self, small: Lab) -> None:
        up(small)
        for pid in cgroups.pids(small.name):
            process = Process.of(pid)
            if process is not None:
                process.kill()
        finish(start(small, "down"))
        assert_nothing_left(small)

    @pytest.mark.long
    def test_up_after_a_reboot_of_this_machine_makes_a_whole_lab(self, small: Lab) -> None:
        up(small)
        record = small.files.state.read_text()
        finish(start(small, "down"))
        # What a reboot leaves: files, on /run too where that is a disk, and pids that are someone else's by now.
        earlier = json.loads(record)
        for process in earlier["processes"].values():
            process.update(pid=os.getpid(), boot="an earlier one")
        small.files.root.mkdir(parents=True)
        small.files.state.write_text(json.dumps(earlier))
        network.path(topology.world_namespace(small.name)).touch()
        assert "Bringing up the lab" in up(small)
        assert small.state().phase == "up"

    def test_down_of_nothing_succeeds_and_says_so(self, small: Lab) -> None:
        assert "nothing is left" in finish(start(small, "down"))


class TestSideBySide:
    """Several commands and several labs get along."""

    def test_a_second_up_of_the_same_name_waits_and_finds_it_up(self, small: Lab) -> None:
        first, second = start(small, "up", "--edges", "0"), start(small, "up", "--edges", "0")
        outputs = [finish(first), finish(second)]
        assert sum("Bringing up the lab" in output for output in outputs) == 1
        assert any("waiting for another command" in output for output in outputs)

    @pytest.mark.long
    def test_labs_of_different_names_have_the_same_addresses_and_do_not_meet(self, small: Lab) -> None:
        with running(name_for_tests("-other"), edges=0) as other:
            up(small)
            scanned = other.run("ssh-keyscan", "-t", "ed25519", "203.0.113.10").stdout
            assert keys.host_key(other.lab.files, other.lab.host("cloud-1")) in scanned
            assert keys.host_key(small.files, small.host("cloud-1")) not in scanned
            finish(start(small, "down"))
            assert_nothing_left(small)
            assert other.run("ssh", "cloud-1", "hostname").stdout.strip() == "cloud-1"

    def test_the_name_of_another_caches_lab_is_refused(self, small: Lab, tmp_path: Path) -> None:
        up(small)
        process = subprocess.run(
            [sys.executable, "-m", "lab", "down", "--name", small.name],
            cwd=CLONE, capture_output=True, text=True, check=False,
            env={**os.environ, "RLINF_CLOUD_EDGE_CACHE": str(tmp_path)},
        )  # fmt: skip
        assert process.returncode == 1
        assert f"belongs to a lab of another cache ({small.files.root})" in process.stderr
        assert small.state().phase == "up"


class TestGrowth:
    """Hosts can be added to a lab that is up, and those it has don't notice."""

    def test_an_added_edge_is_reached_and_the_other_hosts_stay(self, small: Lab) -> None:
        up(small)
        before = small.state().processes
        up(small, "--edges", "1")
        state = small.state()
        assert {role: state.processes[role] for role in before} == before
        assert [host.name for host in state.topology.hosts] == ["bootstrap", "cloud-1", "edge-1"]
        world.wait_for_login(small, small.host("edge-1"))

    def test_fewer_hosts_than_there_are_is_refused(self, small: Lab) -> None:
        up(small, "--edges", "1")
        process = start(small, "up", "--edges", "0")
        assert "more than asked for; take it down first" in process.communicate(timeout=60)[0]
        assert process.returncode == 1

    @pytest.mark.long
    def test_adding_that_was_cut_off_is_cleaned_up_and_the_other_hosts_stay(self, small: Lab) -> None:
        up(small)
        before = small.state().processes
        process = start(small, "up", "--edges", "1")
        assert wait_for(lambda: small.files.console("edge-1").exists() or None, 60)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert [host.name for host in small.state().topology.hosts] == ["bootstrap", "cloud-1"]
        output = up(small, "--edges", "1")
        assert "Cleaning up after hosts whose adding was cut off" in output
        state = small.state()
        assert {role: state.processes[role] for role in before} == before
        world.wait_for_login(small, small.host("edge-1"))
