"""What RLinf runs in on the lab's hosts: RLinf, Ray and torch, locked, in one virtual environment.

It is built on Debian's own Python, which the hosts have at the same path, and is relocatable: hosts see the
folder read-only as /opt/rlinf. Bytecode is compiled here, since a read-only environment can't keep what
Python compiles by itself. It is no part of the project's `.venv`, and not what a user installs on real hosts:
there, RLinf's own images or instructions apply.

Left out are packages that RLinf's scheduler never imports and CUDA libraries that torch loads on a GPU only
(`left-out.txt`). The rest of torch's CUDA libraries can't be: PyPI has no torch for x86_64 without them.
"""

from __future__ import annotations

import hashlib
import subprocess
from functools import partial
from pathlib import Path

from lab.paths import Cache
from lab.progress import note, step
from lab.toolchain.atomic import make_once

LOCK = Path(__file__).with_name("requirements.txt")
"""Every package with its hashes; its first lines say how it was compiled."""

PYTHON = Path("/usr/bin/python3")
"""The Python that lab hosts have at the same path."""

CHECK = "import rlinf.scheduler, rlinf.utils.placement"
"""What must import for the environment to count as whole."""


class UnsuitablePythonError(Exception):
    """This machine's Python is not the one that the lab's hosts have."""


def build(destination: Path, uv: Path) -> Path:
    """Builds the environment unless it is there already, from the same lock and the same Python.

    Takes about two minutes and 4.1 GB of disk the first time: 2.3 GB to download, linked from uv's cache
    where that is on the same file system. An interrupted build leaves nothing that counts as whole.

    Args:
        destination: the folder to hold it, beside others of the cache; hosts mount it as /opt/rlinf.
        uv: the uv executable to install with.

    Returns:
        The virtual environment, `destination/venv`.

    Raises:
        UnsuitablePythonError: /usr/bin/python3 is missing or not 3.11.
        subprocess.CalledProcessError: uv failed; it has said why on standard error.
    """
    version = _python_version()
    lock_digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    # The folder itself stays: running hosts have it mounted, and see the environment appear in it.
    return make_once(Cache(destination.parent), destination / "venv", f"{lock_digest} {version}", partial(_make, uv))


def _make(uv: Path, venv: Path) -> None:
    python = venv / "bin" / "python"
    with step("Installing RLinf, Ray and torch for the lab's hosts (2.3 GB, about 2 minutes)"):
        note("torch from PyPI is the CUDA build; it is used without a GPU here")
        _run(uv, "venv", "--quiet", "--relocatable", "--python", str(PYTHON), str(venv))
        _run(
            *(uv, "pip", "install", "--quiet", "--python", str(python)),
            *("--no-deps", "--require-hashes", "--build-constraints", str(LOCK), "--requirements", str(LOCK)),
            "--compile-bytecode",
        )
        _run(python, "-c", CHECK)


def _run(executable: Path, *arguments: str) -> None:
    subprocess.run([executable, *arguments], check=True, stdin=subprocess.DEVNULL)


def _python_version() -> str:
    """The version of Debian's Python, such as "3.11.2"."""
    try:
        asked = subprocess.run(
            [PYTHON, "-c", "import platform; print(platform.python_version())"],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise UnsuitablePythonError(f"{PYTHON} is not there; apt-get install python3") from None
    version = asked.stdout.strip()
    if not version.startswith("3.11."):
        raise UnsuitablePythonError(
            f"{PYTHON} is {version}, but the lab's hosts are Debian 12 with Python 3.11: "
            "run the lab on Debian 12, or in a Debian 12 container"
        )
    return version
