"""The base root filesystem of all lab hosts: Debian 12, made by mmdebstrap, cached by its recipe.

It holds what every host has in common. Names, addresses and keys are laid over it, host by host (`hosts.py`).
A changed recipe makes another image beside the old one; updated packages alone do not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.paths import Cache
from lab.progress import step
from lab.toolchain.atomic import make_once

SUITE = "bookworm"
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "iproute2",
    "iputils-ping",
    "nftables",
    "python3",
    "python3-venv",
    "sudo",
    "ca-certificates",
    "unzip",
    "curl",
    "procps",
    # For instances of the AWS world alone; switched off on all others.
    "cloud-init",
)

_CUSTOMIZE = Path(__file__).with_name("image_customize.sh")


def recipe() -> str:
    """A digest of everything the image is made from, the contents of packages excepted."""
    parts = [SUITE, os.uname().machine, ",".join(PACKAGES), _CUSTOMIZE.read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def ensure_image(cache: Cache) -> Path:
    """Makes the image unless it is there.

    Returns:
        The root filesystem, never to be written to.

    Raises:
        LabError: mmdebstrap is missing or failed.
    """
    key = recipe()
    return make_once(cache, cache.images / key, key, _build) / "root"


def _build(folder: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise LabError("mmdebstrap is not installed; run `apt-get install mmdebstrap`, or script/bootstrap")
    log = folder / "build.log"
    with step("Making the image of the lab's hosts, Debian 12 (about a minute)"), log.open("w") as output:
        # With a process namespace of its own, the whole build ends when this process does, however it ends.
        build = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL",
             "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}",
             f"--customize-hook={_CUSTOMIZE} \"$1\"", SUITE, str(folder / "root")],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if build.returncode != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise LabError(f"mmdebstrap could not make the image of the lab's hosts; it said last:\n{tail}")
