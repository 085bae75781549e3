"""Scripts of this project on one host: never two at once, also where the first one removes everything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components.host import SCRIPTS
from lab.polling import wait_for

# Takes the lock, notes that it has it, and keeps it until it may end; then does what it is told to.
TAKES_IT = """
set -euo pipefail
here=$1
. "$here/lib.sh"
one_at_a_time
: >"$here/$2.has"
until [[ -e $here/$2.may-end ]]; do read -r -t 0.05 <> <(:) || :; done
eval "$3"
rm "$here/$2.has"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with the scripts, whose lock is in it."""
    for script in SCRIPTS.glob("*.sh"):
        text = script.read_text().replace("/run/rlinf-cloud-edge.lock", str(tmp_path / "lock"))
        (tmp_path / script.name).write_text(text)
    return tmp_path


def start(here: Path, name: str, then: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen(["bash", "-c", TAKES_IT, "_", str(here), name, then], stdin=subprocess.DEVNULL)


def has_it(here: Path, name: str, limit: float) -> bool:
    """Whether that script gets the lock in time."""
    return wait_for(lambda: (here / f"{name}.has").exists() or None, limit) is not None


def test_who_waits_while_all_is_removed_has_the_lock_that_the_next_one_asks_for(here: Path) -> None:
    running = [start(here, "removal", 'rm -f -- "$LOCK"')]
    try:
        assert has_it(here, "removal", 20)
        running.append(start(here, "second"))
        assert not has_it(here, "second", 0.5)
        (here / "removal.may-end").touch()
        assert has_it(here, "second", 20)
        running.append(start(here, "third"))
        assert not has_it(here, "third", 1)
        (here / "second.may-end").touch()
        assert has_it(here, "third", 20)
        (here / "third.may-end").touch()
        assert [process.wait(20) for process in running] == [0, 0, 0]
    finally:
        for process in running:
            process.kill()
            process.wait()
