"""What looks after Ray's processes on a host, tried on processes that are called as Ray's are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from components.packing import SCRIPTS
from lab.polling import wait_for

# As `ray start --block`: starts its children, and goes on whatever becomes of them. Told to end, it ends them first,
# and takes its time.
RAY = """
import json, signal, subprocess, sys, time
def end(*_):
    for child in children:
        child.terminate()
        child.wait()
    time.sleep(3)
    sys.exit(1)
children = [subprocess.Popen(command) for command in json.loads(sys.argv[1])]
signal.signal(signal.SIGTERM, end)
print("started", flush=True)
while True:
    signal.pause()
"""
STAYS = "while :; do read -r -t 600 <> <(:) || :; done"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with shells that are called as Ray's processes."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("raylet", "gcs_server"):
        (folder / name).symlink_to("/bin/bash")
    return folder


@contextmanager
def ray(*children: Sequence[str]) -> Generator[subprocess.Popen[str], None, None]:
    """Ray with these children, in a session of its own, and what watches it, as run-ray.sh starts both."""
    start = ["bash", "-c", '"$0" $$ & exec "$@"', str(SCRIPTS / "watch-ray.sh")]
    process = subprocess.Popen(
        [*start, sys.executable, "-c", RAY, json.dumps(children)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def watchers_of(process: subprocess.Popen[str]) -> list[str]:
    """Process ids of what watches it."""
    found = subprocess.run(
        ["pgrep", "--full", f"watch-ray.sh {process.pid}$"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


class TestWatch:
    """Ray ends when a process has that makes it a node, however that one ended, and for no other reason."""

    def test_it_ends_when_one_of_them_has_as_if_it_was_told_to_and_not_when_others_have(self, programs: Path) -> None:
        raylet, gcs_server = str(programs / "raylet"), str(programs / "gcs_server")
        nodes = {
            "raylet ended by SIGTERM": [[gcs_server, "-c", STAYS], [raylet, "-c", "kill -TERM $$"]],
            "raylet ended with 0": [[raylet, "-c", "exit"]],
            "gcs_server ended with 0": [[gcs_server, "-c", "exit"], [raylet, "-c", STAYS]],
            # A child of the raylet, called so itself before it becomes a worker; long enough to be seen.
            "a worker ended": [[raylet, "-c", f"(read -r -t 2 <> <(:); exit) & {STAYS}"]],
        }
        with ExitStack() as stack:
            started = {name: stack.enter_context(ray(*children)) for name, children in nodes.items()}
            goes_on = started.pop("a worker ended")
            ended = {name: wait_for(node.poll, 30) for name, node in started.items()}
            assert ended == dict.fromkeys(started, -signal.SIGKILL)
            # That those of one Ray have ended is nothing to another one.
            assert wait_for(goes_on.poll, 5) is None

    def test_a_stop_that_is_asked_for_is_left_to_ray_and_ends_what_watches_it(self, programs: Path) -> None:
        with ray([str(programs / "raylet"), "-c", STAYS]) as it:
            assert wait_for(lambda: watchers_of(it) or None, 10)
            it.terminate()
            assert wait_for(it.poll, 30) == 1
            assert wait_for(lambda: None if watchers_of(it) else True, 10)
