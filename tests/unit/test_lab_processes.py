"""A process is known by more than its pid, so that no stranger is ever killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace

import pytest

from lab.processes import Process, boot_id, seconds_running


@pytest.fixture
def child() -> Generator[subprocess.Popen[bytes], None, None]:
    """A process that runs until its input ends."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    yield process
    process.kill()
    process.communicate()


def known(pid: int) -> Process:
    process = Process.of(pid)
    assert process is not None
    return process


def test_a_running_process_is_alive_and_can_be_killed(child: subprocess.Popen[bytes]) -> None:
    process = known(child.pid)
    assert process.alive
    process.kill()
    assert child.wait(timeout=10) == -9
    assert not process.alive


def test_a_process_that_has_the_pid_of_an_earlier_one_is_left_alone(child: subprocess.Popen[bytes]) -> None:
    for earlier in (
        replace(known(child.pid), started=1),
        replace(known(child.pid), boot="another boot of this machine"),
    ):
        assert not earlier.alive
        earlier.kill()
    assert child.poll() is None


def test_a_dead_process_that_nobody_waited_for_is_not_alive(child: subprocess.Popen[bytes]) -> None:
    process = known(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.alive
    assert Process.of(child.pid) is None


def test_killing_what_is_gone_does_nothing(child: subprocess.Popen[bytes]) -> None:
    process = known(child.pid)
    child.kill()
    child.wait()
    process.kill()


def test_the_time_since_its_start_is_in_seconds() -> None:
    assert 0 <= seconds_running(known(os.getpid())) < 24 * 3600
    assert len(boot_id()) == 36
