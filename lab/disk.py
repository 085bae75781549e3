"""The disk of a lab host: an ext4 image in a sparse file, with what makes this host different from the others.

It is the upper layer of the host's root filesystem. It has a size of its own, so that a full disk is one host's
trouble and not this machine's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from lab.state import LabFiles
from lab.topology import LabHost, Topology

SIZE_GIB = 24
"""What `df` shows on a host. The file takes from this machine only what the host has written."""

NETWORK_FILE = "etc/systemd/network/10-host0.network"
"""The network settings of a host. It comes, by its name, before the file that systemd has for containers."""

_USER_ID = 1000


def create(files: LabFiles, lab: Topology, host: LabHost) -> None:
    """Makes the disk of a host that was never on.

    Keys of the host and of the operator must have been made.
    """
    make(files.host(host.name), lambda root: _write_root(root, files, lab, host))


def make(folder: Path, write_root: Callable[[Path], None], size_gib: int = SIZE_GIB) -> None:
    """Makes a disk, `disk.img`.

    Args:
        folder: of the host.
        write_root: writes what is on it to a folder that it makes.
        size_gib: its size.
    """
    content = folder / "content"
    if content.exists():
        shutil.rmtree(content)
    (content / "work").mkdir(parents=True)
    write_root(content / "upper")
    image = folder / "disk.img"
    with image.open("wb") as file:
        file.truncate(size_gib << 30)
    # A lab host's disk never outlives a crash of this machine: it needs no journal.
    subprocess.run(
        ["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "root_owner=0:0",
         "-d", str(content), str(image)],
        check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    shutil.rmtree(content)


def network_file(lab: Topology, host: LabHost) -> str:
    """The systemd-networkd file of a host: its address, and its routes."""
    lines = ["[Match]", "Name=host0", "", "[Network]", f"Address={host.address}/24", "LinkLocalAddressing=no"]
    if host.gateway is not None:
        lines.append(f"Gateway={host.gateway}")
    for network, gateway in routes(lab, host):
        lines += ["", "[Route]", f"Destination={network}", f"Gateway={gateway}"]
    return "\n".join(lines) + "\n"


def routes(lab: Topology, host: LabHost) -> Iterable[tuple[str, str]]:
    """Networks a host reaches by another way than its default: the bootstrap knows the routers of the edges."""
    if host.role != "bootstrap":
        return ()
    return ((router.lan_network, router.public_address) for router in lab.routers)


def _write_root(root: Path, files: LabFiles, lab: Topology, host: LabHost) -> None:
    root.mkdir(mode=0o755)
    write(root / "etc/hostname", f"{host.name}\n")
    write(root / "etc/hosts", f"127.0.0.1 localhost\n{host.address} {host.name}\n::1 localhost ip6-localhost\n")
    write(root / "etc/machine-id", f"{uuid.uuid4().hex}\n", mode=0o444)
    write(root / NETWORK_FILE, network_file(lab, host))
    for private in sorted(files.host(host.name).glob("ssh_host_*_key")):
        public = private.with_name(f"{private.name}.pub")
        write(root / "etc/ssh" / private.name, private.read_text(), mode=0o600)
        write(root / "etc/ssh" / public.name, public.read_text())
    key = files.client_key.with_name(f"{files.client_key.name}.pub").read_text()
    write(root / "home/debian/.ssh/authorized_keys", key, mode=0o600)
    (root / "home/debian/.ssh").chmod(0o700)
    for path in (root / "home/debian", root / "home/debian/.ssh", root / "home/debian/.ssh/authorized_keys"):
        os.chown(path, _USER_ID, _USER_ID)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes a file of a disk, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    path.write_text(text)
    path.chmod(mode)
