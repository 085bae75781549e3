"""What systemd says of a service, as the scripts read it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components.packing import SCRIPTS


@pytest.mark.parametrize(
    ("state", "present"),
    [
        ("active", True),
        # Between two starts, its processes may still be there, and so may what they listen on.
        ("activating", True),
        ("deactivating", True),
        ("failed", False),
        ("inactive", False),
    ],
)
def test_a_service_is_present_as_long_as_processes_of_it_may_be_there(
    tmp_path: Path, state: str, present: bool
) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f"#!/bin/sh\necho {state}\nexit {0 if state == 'active' else 3}\n")
    systemctl.chmod(0o755)
    code = f'set -euo pipefail; . "$1"; PATH={tmp_path}:$PATH; is_present rlinf-ray.service'
    done = subprocess.run(["bash", "-c", code, "bash", SCRIPTS / "systemd.sh"], capture_output=True, check=False)
    assert done.stderr == b""
    assert (done.returncode == 0) == present
