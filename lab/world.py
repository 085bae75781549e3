"""A lab as a whole: bringing it up, adding hosts to it, taking it down, telling what is there.

The order of events is here; what each step does is in the module it is named after. Every step finds what it made
again by the lab's name alone, so that a lab cut off at any point can be taken down.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from lab import cgroups, disk, hosts, inventory, keys, network, operator, services, toolchain, topology
from lab.errors import LabError
from lab.image import ensure_image
from lab.paths import Cache
from lab.polling import wait_for
from lab.progress import note, step
from lab.state import LabFiles, State, claimed
from lab.toolchain.mirror import ensure_mirror
from lab.topology import Kind, LabHost, Topology

T = TypeVar("T")

LOGIN_LIMIT_S = 30
"""Seconds from the end of a host's boot to a login from the operator's workstation."""

_COMMANDS = {
    "systemd-nspawn": "systemd-container",
    "nft": "nftables",
    "ip": "iproute2",
    "ssh-agent": "openssh-client",
    "mkfs.ext4": "e2fsprogs",
    "nsenter": "util-linux",
}
_PARALLEL = 4


@dataclass(frozen=True)
class Lab:
    """One lab of this machine, by name.

    Attributes:
        cache: where everything about it is kept.
        name: which one.
    """

    cache: Cache
    name: str

    @property
    def files(self) -> LabFiles:
        """Its files."""
        return LabFiles.of(self.cache, self.name)

    def state(self) -> State:
        """The record of a lab that is up.

        Raises:
            LabError: it is not.
        """
        state = self.files.load()
        if state is None:
            raise LabError(f"no lab called {self.name} is up; `script/lab up{_name_option(self.name)}` makes one")
        if state.phase != "up":
            raise LabError(
                f"the lab {self.name} is not up: it is being made just now, or its making was cut off; "
                f"`script/lab up{_name_option(self.name)}` cleans up and makes it anew"
            )
        return state

    def host(self, name: str) -> LabHost:
        """One of its hosts.

        Raises:
            LabError: the lab is not up, or has no such host.
        """
        instances = self.files.load_aws_hosts()
        known = [topology.aws_host(each.name, each.private_address) for each in instances]
        return topology.find((*self.state().topology.hosts, *known), name)


def check_machine(cache: Cache) -> None:
    """Checks that this machine can hold a lab.

    Raises:
        LabError: it can't; the message says what is missing.
    """
    check_root()
    missing = sorted({package for command, package in _COMMANDS.items() if shutil.which(command) is None})
    if missing:
        raise LabError(f"the lab needs packages that are not installed: run `apt-get install {' '.join(missing)}`")
    for device in ("/dev/net/tun", "/dev/loop-control"):
        if not Path(device).exists():
            raise LabError(f"the lab's hosts need {device}, which this machine does not have")
    if set(str(cache.root)) & set(":,\\\"' \n"):
        raise LabError(f"{cache.root}: the lab's cache must have a plain path; set RLINF_CLOUD_EDGE_CACHE to another")


def check_root() -> None:
    """Checks that this is root, whom namespaces, mounts and booted hosts need.

    Raises:
        LabError: it is not.
    """
    if os.geteuid() != 0:
        raise LabError("the lab needs root: run this command with sudo, or as root")


def up(
    lab: Lab, clouds: int | None, edges: int | None, kinds: Mapping[str, Kind] | None = None, *, aws: bool = False
) -> State:
    """Brings a lab up, or what is missing of it; on one that is up, more hosts may be asked for.

    Args:
        lab: which one.
        clouds: number of cloud nodes; left out, as many as it has, else 1.
        edges: number of edges; left out, as many as it has, else 1.
        kinds: name of an edge → how it runs; of an edge that is there, it can't be changed.
        aws: whether it is to have an AWS world; one that is there stays.

    Raises:
        LabError: it can't be brought up, or hosts can't be added. What was made meanwhile is gone again.
    """
    check_machine(lab.cache)
    kinds = dict(kinds or {})
    Topology(lab.name, clouds or 1, 1 if edges is None else edges)
    tools = toolchain.ensure(lab.cache)
    mirror = ensure_mirror(lab.cache)
    # Those of the toolchain are named by script/bootstrap, which makes it.
    for sentence in mirror.substitutes:
        note(sentence)
    image = ensure_image(lab.cache)
    with claimed(lab.name, lab.files.root):
        before = lab.files.load()
        if before is not None and _is_running(before):
            if aws and not before.aws:
                before = _add_aws(lab, before)
            return _complete(lab, before, clouds, edges, kinds)
        destroy(lab)
        state = State(
            name=lab.name,
            clouds=1 if clouds is None else clouds,
            edges=1 if edges is None else edges,
            phase="starting",
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            image=str(image),
            bin_dirs=tuple(map(str, tools.bin_dirs)),
            pulumi_home=str(tools.pulumi_home),
            substitutes=(*tools.substitutes, *mirror.substitutes),
            easytier_sha256=mirror.easytier_sha256,
            uv_sha256=mirror.uv_sha256,
            kinds=kinds,
            aws=aws,
        )
        Topology(state.name, state.clouds, state.edges, kinds)
        try:
            with step(f"Bringing up the lab {lab.name}: a bootstrap, {state.topology.shape}"):
                return _make(lab, state, mirror.root)
        except BaseException:
            destroy(lab)
            raise


def down(lab: Lab) -> bool:
    """Takes a lab down, whatever is left of it.

    Returns:
        Whether there was anything.

    Raises:
        LabError: something could not be removed.
    """
    check_root()
    with claimed(lab.name, lab.files.root):
        return destroy(lab)


def destroy(lab: Lab) -> bool:
    """Removes all that a lab has on this machine. The caller holds its name.

    Returns:
        Whether there was anything.
    """
    if not remains(lab):
        return False
    state = lab.files.load()
    cut_off = state is None or state.phase != "up"
    what = f"Cleaning up what is left of the lab {lab.name}" if cut_off else f"Taking down the lab {lab.name}"
    with step(what):
        cgroups.destroy(lab.name)
        for process in state.processes.values() if state else ():
            process.kill()
        _unmount_below(lab.files.root)
        network.destroy(lab.name)
        if wait_for(lambda: None if _loop_devices_of(lab.files.root) else True, 10) is None:
            raise LabError(f"loop devices are still in use: {', '.join(_loop_devices_of(lab.files.root))}")
        if wait_for(lambda: _removed(lab.files.root), 10) is None:
            raise LabError(f"{lab.files.root} can't be removed: something still writes to it")
    return True


def remains(lab: Lab) -> list[str]:
    """What a lab has on this machine, one line each; nothing when it is down."""
    found = [f"network namespace {namespace}" for namespace in network.namespaces_of(lab.name)]
    found += [f"control group {folder}" for folder in cgroups.folders(lab.name) if folder.exists()]
    found += [f"process {pid}" for pid in sorted(cgroups.pids(lab.name))]
    found += [f"mount {path}" for path in _mounts_below(lab.files.root)]
    found += [f"loop device {device}" for device in _loop_devices_of(lab.files.root)]
    if lab.files.root.exists():
        found.append(f"folder {lab.files.root}")
    return found


def settings(lab: Lab) -> str:
    """The `cluster` settings of a lab that is up, as YAML.

    Raises:
        LabError: it is not up.
    """
    state = lab.state()
    host_keys = {host.name: keys.host_key(lab.files, host) for host in state.topology.hosts}
    return inventory.render(
        inventory.cluster(
            state.topology,
            host_keys,
            easytier_sha256=state.easytier_sha256,
            uv_sha256=state.uv_sha256,
            architecture=os.uname().machine,
        )
    )


def switch_on(lab: Lab, state: State, chosen: Sequence[LabHost]) -> State:
    """Boots hosts whose disks are there, and waits until the operator can log in.

    Args:
        lab: which one; the caller holds its name.
        state: its record.
        chosen: the hosts.

    Returns:
        The record with their processes, saved.
    """
    lab.cache.rlinf.mkdir(parents=True, exist_ok=True)
    runners = {
        host.name: hosts.switch_on(lab.files, lab.name, host, Path(state.image), lab.cache.rlinf) for host in chosen
    }
    for name, runner in runners.items():
        state = state.with_process(f"host/{name}", runner)
    state = replace(state, stopped=tuple(name for name in state.stopped if name not in runners))
    lab.files.save(state)
    _each(chosen, lambda host: hosts.wait_until_up(lab.files, lab.name, host, runners[host.name]))
    _each(chosen, lambda host: wait_for_login(lab, host))
    return state


def wait_for_login(lab: Lab, host: LabHost) -> None:
    """Waits until the operator can log in to a host and become root on it.

    Raises:
        LabError: not in time; the message has what ssh said last.
    """
    said = ""

    def login() -> bool | None:
        nonlocal said
        done = subprocess.run(
            [lab.files.bin / "ssh", "-o", "BatchMode=yes", host.name, "sudo -n true"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = done.stderr.strip()
        return True if done.returncode == 0 else None

    if wait_for(login, LOGIN_LIMIT_S) is None:
        raise LabError(
            f"{host.name} booted, but no login works within {LOGIN_LIMIT_S} s; ssh says: {said}. "
            f"{hosts.console_tail(lab.files, host.name)}"
        )


def _make(lab: Lab, state: State, served: Path) -> State:
    lab.files.save(state)
    operator.prepare(lab.files)
    operator.write_commands(lab.files, lab.name, state.bin_dirs)
    network.create_segments(state.topology)
    state = state.with_process("mirror", services.start_mirror(lab.files, lab.name, served))
    lab.files.save(state)
    state = state.with_process("agent", services.start_agent(lab.files, lab.name))
    lab.files.save(state)
    if state.aws:
        state = _add_aws(lab, state)
    state = _add(lab, state, state.topology.hosts)
    state = replace(state, phase="up")
    lab.files.save(state)
    return state


def _add_aws(lab: Lab, state: State) -> State:
    """Gives a lab an AWS world."""
    network.create_aws(lab.name)
    state = replace(state, aws=True)
    lab.files.save(state)
    return _start_aws(lab, state)


def _start_aws(lab: Lab, state: State) -> State:
    lab.cache.rlinf.mkdir(parents=True, exist_ok=True)
    process = services.start_aws(lab.files, lab.name, Path(state.image), lab.cache.rlinf)
    state = state.with_process("aws", process)
    lab.files.save(state)
    return state


def _complete(lab: Lab, state: State, clouds: int | None, edges: int | None, kinds: Mapping[str, Kind]) -> State:
    """Restarts what is not running of a lab that is up, and adds the hosts that are asked for beyond those it has."""
    if state.growing_to is not None:
        with step("Cleaning up after hosts whose adding was cut off"):
            state = _forget_added(lab, state)
    target = (clouds or state.clouds, state.edges if edges is None else edges)
    if target[0] < state.clouds or target[1] < state.edges:
        raise LabError(
            f"the lab {lab.name} is up with {state.topology.shape}, more than asked for; take it down first with "
            f"`script/lab down{_name_option(lab.name)}`, or give another --name"
        )
    for host in state.topology.hosts:
        if kinds.get(host.name, host.kind) != host.kind:
            raise LabError(f"--edge-kind {host.name}={kinds[host.name]}: it is up already, as {host.kind}")
    Topology(lab.name, *target, {**state.kinds, **kinds})
    state = _restart(lab, state)
    if target == (state.clouds, state.edges):
        note(f"The lab {lab.name} is up: a bootstrap, {state.topology.shape}")
        return state
    state = replace(state, growing_to=target, kinds={**state.kinds, **kinds})
    added = [host for host in state.wanted.hosts if host not in state.topology.hosts]
    with step(f"Adding to the lab {lab.name}: {', '.join(host.name for host in added)}"):
        lab.files.save(state)
        try:
            _teach_routes(lab, state)
            state = _add(lab, state, added)
        except BaseException:
            _forget_added(lab, lab.files.load() or state)
            raise
        state = replace(state, clouds=target[0], edges=target[1], growing_to=None)
        lab.files.save(state)
    return state


def _add(lab: Lab, state: State, added: Sequence[LabHost]) -> State:
    """Makes and boots hosts that are wanted but nowhere yet."""
    bridges = {host.bridge for host in added}
    for router in state.wanted.routers:
        if router.lan_bridge in bridges:
            network.create_router(lab.name, router)

    def furnish(host: LabHost) -> None:
        keys.create_host_keys(lab.files, host)
        disk.create(lab.files, state.wanted, host)

    _each(added, furnish)
    operator.write_ssh_config(lab.files, state.wanted.hosts)
    return switch_on(lab, state, added)


def _forget_added(lab: Lab, state: State) -> State:
    """Removes hosts whose adding did not succeed, and leaves the others as they are."""
    added = [host for host in state.wanted.hosts if host not in state.topology.hosts]
    for host in added:
        hosts.cut_power(lab.name, host.name)
        if lab.files.host(host.name).exists():
            shutil.rmtree(lab.files.host(host.name))
    for router in state.wanted.routers:
        if router not in state.topology.routers:
            network.destroy_router(lab.name, router)
    operator.write_ssh_config(lab.files, state.topology.hosts)
    roles = {f"host/{host.name}" for host in added}
    remaining = {role: process for role, process in state.processes.items() if role not in roles}
    state = replace(state, growing_to=None, processes=remaining)
    lab.files.save(state)
    return state


def _restart(lab: Lab, state: State) -> State:
    """Starts again what is not running of a lab that is up."""
    if not state.processes["mirror"].alive:
        state = state.with_process("mirror", services.start_mirror(lab.files, lab.name, lab.cache.mirror))
    if not state.processes["agent"].alive:
        state = state.with_process("agent", services.start_agent(lab.files, lab.name))
    lab.files.save(state)
    if state.aws and not state.processes["aws"].alive:
        # Its account was in its memory: what there was of it goes, and a new one begins.
        state = _start_aws(lab, state)
    off = [host for host in state.topology.hosts if not state.processes[f"host/{host.name}"].alive]
    if off:
        with step(f"Switching on again: {', '.join(host.name for host in off)}"):
            for host in off:
                hosts.cut_power(lab.name, host.name)
            state = switch_on(lab, state, off)
    return state


def _teach_routes(lab: Lab, state: State) -> None:
    """Gives the running bootstrap the routes to the networks of all edges, now and after a reboot."""
    bootstrap = state.topology.host("bootstrap")
    path = f"/{disk.NETWORK_FILE}"
    hosts.must(lab.name, bootstrap.name, "tee", path, stdin=disk.network_file(state.wanted, bootstrap))
    for destination, gateway in disk.routes(state.wanted, bootstrap):
        hosts.must(lab.name, bootstrap.name, "ip", "route", "replace", destination, "via", gateway, "proto", "static")


def _is_running(state: State) -> bool:
    """Whether a lab came up whole and at least one of its hosts still runs."""
    return state.phase == "up" and any(
        process.alive for role, process in state.processes.items() if role.startswith("host/")
    )


def _each(items: Iterable[T], work: Callable[[T], None]) -> None:
    """Does the same for each, several at once; the first error ends it, when those at work are done."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _removed(folder: Path) -> bool | None:
    # A command that a killed `up` had started may still add a file: then once more.
    shutil.rmtree(folder, ignore_errors=True)
    return None if folder.exists() else True


def _unmount_below(root: Path) -> None:
    for mount in sorted(_mounts_below(root), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)


def _mounts_below(root: Path) -> list[str]:
    mounts = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
    return [mount for mount in mounts if mount.startswith(f"{root}/")]


def _loop_devices_of(root: Path) -> list[str]:
    found: list[str] = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            file = backing.read_text().strip()
        except OSError:
            continue
        if file.startswith(f"{root}/"):
            found.append(f"/dev/{backing.parents[1].name}")
    return found


def _name_option(name: str) -> str:
    return "" if name == "demo" else f" --name {name}"
