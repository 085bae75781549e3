"""What the tests of changes share: what a preview shows, and releases of another version on a mirror of their own."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import mirror_server, network, topology
from lab.polling import wait_for
from lab.stack import Stack
from lab.toolchain import versions
from lab.toolchain.mirror import EASYTIER_ARCHIVE, WHEELS

_PORT = 8081


def planned(stack: Stack) -> dict[str, str]:
    """What a preview shows: name of a resource to what is to be done to it, where that is anything."""
    shown = json.loads(stack.pulumi("preview", "--json"))
    return {step["urn"].rpartition("::")[2]: step["op"] for step in shown["steps"] if step["op"] != "same"}


@contextmanager
def mirror_of(stack: Stack, folder: Path) -> Generator[str, None, None]:
    """Serves a folder to the lab's hosts, beside the lab's own mirror; gives the URL."""
    namespace = topology.mirror_namespace(stack.lab.name)
    serve = [sys.executable, "-I", mirror_server.__file__, str(folder), topology.MIRROR_ADDRESS, str(_PORT)]
    command = ["nsenter", f"--net={network.path(namespace)}", *serve]
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        listening = f":{_PORT} "
        assert wait_for(lambda: listening in network.run_in(namespace, "ss", "-Hltn") or None, 20)
        yield f"http://{topology.MIRROR_ADDRESS}:{_PORT}"
    finally:
        running.kill()
        running.wait()


@dataclass(frozen=True)
class Release:
    """An archive.

    Attributes:
        path: where it is.
        sha256: of its bytes.
    """

    path: Path
    sha256: str


def easytier_release(stack: Stack, folder: Path, version: str) -> Release:
    """The lab's EasyTier release under another version: the same programs, and a file that names it."""
    source = stack.lab.lab.cache.mirror / EASYTIER_ARCHIVE
    archive = folder / source.name.replace(versions.EASYTIER, version)
    shutil.copyfile(source, archive)
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr(f"{opened.namelist()[0].partition('/')[0]}/RELEASE", version)
    return Release(archive, hashlib.sha256(archive.read_bytes()).hexdigest())


def ray_wheels(stack: Stack, folder: Path) -> str:
    """All wheels of the lab, and besides its Ray, the same code as a later patch level; returns that version."""
    old = versions.RAY
    new = f"{old.rpartition('.')[0]}.{int(old.rpartition('.')[2]) + 1}"
    for wheel in (stack.lab.lab.cache.mirror / WHEELS).glob("*.whl"):
        (folder / wheel.name).symlink_to(wheel)
    [source] = folder.glob(f"ray-{old}-*.whl")
    info = (f"ray-{old}.dist-info", f"ray-{new}.dist-info")
    with (
        zipfile.ZipFile(source) as read,
        zipfile.ZipFile(folder / source.name.replace(old, new), "w", zipfile.ZIP_STORED) as written,
    ):
        for member in read.infolist():
            content = read.read(member)
            if member.filename in (f"{info[0]}/METADATA", "ray/_version.py"):
                content = content.replace(old.encode(), new.encode())
            elif member.filename == f"{info[0]}/RECORD":
                content = content.replace(info[0].encode(), info[1].encode())
            entry = zipfile.ZipInfo(member.filename.replace(*info), member.date_time)
            entry.external_attr = member.external_attr
            written.writestr(entry, content)
    return new
