"""What is written down about a lab: enough to use it, and to clean up after it however it ended.

Two records. In the cache, `labs/NAME/state.json` says what the lab consists of and is written before any of it is
made. In /run, `rlinf-cloud-edge/NAME` says which folder the name belongs to, as the names of namespaces and control
groups are one for the whole machine; it is also the lock that keeps two commands off one lab.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TextIO

from lab.errors import LabError
from lab.paths import Cache
from lab.processes import Process
from lab.progress import note
from lab.topology import Kind, Topology

_RUN = Path("/run/rlinf-cloud-edge")

Phase = Literal["starting", "up"]


@dataclass(frozen=True)
class State:
    """One lab, as recorded.

    Attributes:
        phase: `starting` until everything is up; a lab found so with nobody at work on it was cut off.
        started_at: when `lab up` made it, in ISO 8601.
        image: base root filesystem of its hosts.
        processes: the long-running processes by role: `mirror`, `agent`, `aws` where there is one, and `host/NAME`.
        stopped: hosts that were switched off on purpose.
        kinds: name of an edge → how it runs, where that is not by systemd.
        aws: whether it has an AWS world.
        growing_to: while hosts are being added, the numbers of cloud nodes and edges there will be.
        bin_dirs: where the toolchain's commands are.
        pulumi_home: the toolchain's PULUMI_HOME.
        substitutes: what stands in for something that could not be had, one sentence each.
        easytier_sha256: of the EasyTier archive on the mirror.
        uv_sha256: of the uv archive on the mirror.
    """

    name: str
    clouds: int
    edges: int
    phase: Phase
    started_at: str
    image: str
    bin_dirs: tuple[str, ...]
    pulumi_home: str
    substitutes: tuple[str, ...]
    easytier_sha256: str
    uv_sha256: str
    processes: dict[str, Process] = field(default_factory=dict[str, Process])
    stopped: tuple[str, ...] = ()
    growing_to: tuple[int, int] | None = None
    kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])
    aws: bool = False

    @property
    def topology(self) -> Topology:
        """The lab's hosts, routers and addresses."""
        return self._of(self.clouds, self.edges)

    @property
    def wanted(self) -> Topology:
        """The same with the hosts that are being added."""
        clouds, edges = self.growing_to or (self.clouds, self.edges)
        return self._of(clouds, edges)

    def _of(self, clouds: int, edges: int) -> Topology:
        names = {f"edge-{number}" for number in range(1, edges + 1)}
        kinds: dict[str, Kind] = {name: kind for name, kind in self.kinds.items() if name in names}
        return Topology(self.name, clouds=clouds, edges=edges, kinds=kinds)

    def with_process(self, role: str, process: Process) -> State:
        """The same with one more process."""
        return replace(self, processes={**self.processes, role: process})


@dataclass(frozen=True)
class AwsHost:
    """An instance of the AWS world, as recorded.

    Attributes:
        name: its id.
        public_address: empty where it has none.
        runs: whether it is to be on.
    """

    name: str
    private_address: str
    public_address: str
    runs: bool


@dataclass(frozen=True)
class LabFiles:
    """The files of one lab.

    Attributes:
        root: its folder in the cache.
    """

    root: Path

    @classmethod
    def of(cls, cache: Cache, name: str) -> LabFiles:
        """The files of the lab of this name."""
        return cls(cache.labs / name)

    @property
    def state(self) -> Path:
        """The record."""
        return self.root / "state.json"

    @property
    def bin(self) -> Path:
        """Commands of this machine, wrapped so that they run in the operator's namespace."""
        return self.root / "bin"

    @property
    def pulumi(self) -> Path:
        """The Pulumi backend."""
        return self.root / "pulumi"

    @property
    def passphrase(self) -> Path:
        """The passphrase of the Pulumi stacks of this lab."""
        return self.root / "passphrase"

    @property
    def client_key(self) -> Path:
        """The operator's SSH key; the agent holds it."""
        return self.root / "client_key"

    @property
    def agent(self) -> Path:
        """The socket of the operator's ssh-agent."""
        return self.root / "agent.sock"

    @property
    def known_hosts(self) -> Path:
        """The keys of all hosts, by name and by address."""
        return self.root / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """How the operator's ssh reaches each host by name."""
        return self.root / "ssh_config"

    @property
    def mirror_log(self) -> Path:
        """The access log of the HTTP mirror."""
        return self.root / "mirror.log"

    @property
    def aws_log(self) -> Path:
        """What the process of the AWS world says."""
        return self.root / "aws.log"

    @property
    def aws_hosts(self) -> Path:
        """The record of the instances of the AWS world."""
        return self.root / "aws_hosts.json"

    def load_aws_hosts(self) -> tuple[AwsHost, ...]:
        """The instances of the AWS world; none where there is no such world."""
        try:
            return tuple(AwsHost(**each) for each in json.loads(self.aws_hosts.read_text()))
        except FileNotFoundError:
            return ()

    def host(self, name: str) -> Path:
        """The folder of one host: disk, keys, console log."""
        return self.root / "hosts" / name

    def console(self, name: str) -> Path:
        """What a host printed on its console since it was first switched on."""
        return self.host(name) / "console.log"

    def host_key(self, name: str) -> Path:
        """The private Ed25519 host key of a host; the public one is beside it."""
        return self.host(name) / "ssh_host_ed25519_key"

    def load(self) -> State | None:
        """Reads the record; None where there is none, or none that can be read."""
        try:
            return _from_json(json.loads(self.state.read_text()))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def save(self, state: State) -> None:
        """Replaces the record in one step."""
        self.root.mkdir(parents=True, exist_ok=True)
        fresh = self.state.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(state), indent=1))
        fresh.rename(self.state)


@contextmanager
def claimed(name: str, root: Path) -> Generator[None, None, None]:
    """Holds a lab's name on this machine, alone, until the block ends; waits for whoever holds it.

    The claim outlasts the block for as long as the lab has anything on this machine: `release` ends it.

    Args:
        name: of the lab.
        root: the folder of the lab, which the name then stands for.

    Raises:
        LabError: the name stands for a lab of another cache.
    """
    with _locked(name) as handle:
        other = handle.read().strip()
        if other and Path(other) != root and Path(other).exists():
            raise LabError(
                f"the name {name} belongs to a lab of another cache ({other}): take that one down with "
                f"RLINF_CLOUD_EDGE_CACHE={Path(other).parents[1]} script/lab down --name {name}, or give another --name"
            )
        _rewrite(handle, str(root))
        try:
            yield
        finally:
            if not root.exists():
                (_RUN / name).unlink()
                with suppress(OSError):
                    _RUN.rmdir()


def claimed_names(cache: Cache) -> list[str]:
    """The labs of this cache that have anything on this machine, cut-off ones included."""
    names = {path.name for path in _entries(cache.labs)}
    for claim in _entries(_RUN):
        with suppress(FileNotFoundError):
            owner = Path(claim.read_text().strip() or "/")
            if owner.parent == cache.labs or not owner.exists():
                names.add(claim.name)
    return sorted(names)


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing where it is gone, or never was."""
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


@contextmanager
def _locked(name: str) -> Generator[TextIO, None, None]:
    path = _RUN / name
    while True:
        # Whoever ends the last claim takes the folder away, at any moment between these calls and inside them.
        try:
            _RUN.mkdir(mode=0o755, exist_ok=True)
            handle = path.open("a+")
        except (FileNotFoundError, FileExistsError):
            if _is_no_folder(_RUN):
                raise
            continue
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note(f"waiting for another command that is at work on the lab {name}")
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever held it may have taken the lab down and the file away.
            if _is_still(path, handle):
                handle.seek(0)
                yield handle
                return


# What is looked at here may be gone at the next look, so there is one only.


def _is_no_folder(path: Path) -> bool:
    """Whether there is something at a path that is no folder."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _is_still(path: Path, handle: TextIO) -> bool:
    """Whether a path is that of an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def _rewrite(handle: TextIO, text: str) -> None:
    handle.seek(0)
    handle.truncate()
    handle.write(text)
    handle.flush()


def _from_json(data: dict[str, Any]) -> State:
    processes = {role: Process(**process) for role, process in data.pop("processes").items()}
    for key in ("bin_dirs", "substitutes", "stopped", "growing_to"):
        data[key] = None if data.get(key) is None else tuple(data[key])
    return State(**data, processes=processes)
