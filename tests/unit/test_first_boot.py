"""What the checks of a host make of cloud-init: the whole script, by bash itself.

`cloud-init` is a stand-in here: a program that ends as the real one is documented to end and prints what it prints
(https://docs.cloud-init.io/en/latest/howto/status.html). `uname` is one as well, of a processor that is refused, so
that no check passes and nothing is installed on the machine that runs the tests. The real cloud-init is in
tests/lab/test_aws.py.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "components" / "scripts"
SCRIPT = next(file for file in SCRIPTS.glob("*.sh") if "cloud-init status --wait" in file.read_text())
"""The one that runs first on a host."""

FAILED = """\
status: error
extended_status: error - done
boot_status_code: enabled-by-generator
detail: DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud]
errors:
\t- ('package_update_upgrade_install', ProcessExecutionError("Unexpected error while running command."))"""
RUNNING = """\
status: running
extended_status: running
detail: DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud]"""


@dataclass(frozen=True)
class Told:
    """How the script ended."""

    status: int
    text: str


@dataclass(frozen=True)
class Host:
    """A host, as far as its first boot shows on it."""

    programs: Path

    def program(self, name: str, text: str) -> None:
        """It has this program."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def cloud_init(self, told: str, status: int = 0, wait: str = "true") -> None:
        """Its cloud-init says this of itself and ends so, and does that before where it is waited for."""
        self.program("cloud-init", f"[ \"$2\" != --wait ] || {wait}\ncat <<'END'\n{told}\nEND\nexit {status}")

    def checked(self, *settings: str) -> Told:
        """What the checks say of it."""
        done = subprocess.run(
            ["bash", str(SCRIPT), "up"],
            env={"PATH": f"{self.programs}:/usr/bin:/bin"},
            input="\n".join(["HOST=cloud-1", *settings]),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.stdout == ""
        return Told(done.returncode, done.stderr)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.program("uname", "echo sparc64")
    return made


def test_one_that_failed_is_told_with_what_is_missing_on_the_host(host: Host) -> None:
    host.cloud_init(FAILED, 1)
    told = host.checked("CLOUD_INIT_LIMIT=20")
    assert told.status == 1
    assert "cloud-1: warning: its first boot failed: status: error" in told.text
    faults = told.text.partition("nothing was changed on it:")[2].strip().splitlines()
    assert faults[0].startswith("- its processor is sparc64")
    assert faults[-1].startswith("  - its first boot failed: status: error ")
    assert "package_update_upgrade_install" in faults[-1]
    assert faults[-1].endswith("; see /var/log/cloud-init-output.log there")


def test_one_that_does_not_end_is_waited_for_no_longer_than_the_limit(host: Host) -> None:
    host.cloud_init(RUNNING, wait="exec sleep 60")
    began = time.monotonic()
    told = host.checked("CLOUD_INIT_LIMIT=1")
    assert time.monotonic() - began < 10
    assert told.status == 1
    assert "cloud-1: its first boot has not ended after 1 s: status: running" in told.text
    assert "/var/log/cloud-init.log" in told.text
    assert "run pulumi up again" in told.text
    assert "its processor" not in told.text, "what it has yet to install is not called missing"


@pytest.mark.parametrize("status", [0, 2], ids=["done", "done, with warnings"])
def test_one_that_ended_well_is_no_fault(host: Host, status: int) -> None:
    host.cloud_init("status: done", status)
    told = host.checked("CLOUD_INIT_LIMIT=20")
    assert "waiting for the end of its first boot" in told.text
    assert "first boot failed" not in told.text
    assert "- its processor is sparc64" in told.text


def test_the_cloud_init_of_a_host_that_exists_is_its_owners_affair(host: Host) -> None:
    host.cloud_init(FAILED, 1)
    assert "first boot" not in host.checked("CLOUD_INIT_LIMIT=").text
