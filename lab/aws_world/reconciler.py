"""Makes the lab's hosts and network what the account says, again and again, whoever changed the account."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import disk, hosts, network, topology
from lab.aws_world import cloud_init, firewall, plan
from lab.aws_world.backend import backend
from lab.errors import LabError
from lab.polling import wait_for
from lab.processes import Process
from lab.state import AwsHost, LabFiles
from lab.topology import LabHost

_LOOK_S = 1.0
"""Seconds after which it looks by itself: a host may have switched itself off."""

_HALT_LIMIT_S = 10
_PARALLEL = 4


@dataclass
class _Host:
    """A host that was made for an instance."""

    runner: Process | None = None
    reboots: int = 0


class Reconciler:
    """The one that boots and removes hosts.

    Args:
        files: of the lab.
        lab: its name.
        image: base root filesystem of its hosts.
        shared: folder that the hosts see as /opt/rlinf.
    """

    def __init__(self, files: LabFiles, lab: str, image: Path, shared: Path) -> None:
        self._files = files
        self._lab = lab
        self._image = image
        self._shared = shared
        self._hosts: dict[str, _Host] = {}
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._rules = ""
        self._addresses: set[str] = set()
        self._networks: set[str] = set()
        self._written: list[AwsHost] | None = None

    def wake(self) -> None:
        """Has it look at once."""
        self._wake.set()

    def run(self) -> None:
        """Works until the process ends."""
        self._remove_leftovers()
        with ThreadPoolExecutor(_PARALLEL) as pool:
            while True:
                self._wake.wait(_LOOK_S)
                self._wake.clear()
                try:
                    self._look(pool)
                except Exception:  # noqa: BLE001  # what is wrong with one look must not end the others
                    # Most often the account changed while it was read: the next look sees it whole.
                    traceback.print_exc(file=sys.stderr)

    def _remove_leftovers(self) -> None:
        """Removes hosts of an account that was lost with its process."""
        folder = self._files.host("x").parent
        for each in folder.glob("i-*") if folder.is_dir() else ():
            hosts.cut_power(self._lab, each.name)
            shutil.rmtree(each)

    def _look(self, pool: ThreadPoolExecutor) -> None:
        wanted = plan.current()
        self._connect(wanted)
        for name, instance in wanted.instances.items():
            host = self._hosts.setdefault(name, _Host(reboots=instance.reboots))
            on = host.runner is not None and host.runner.alive
            if instance.runs and host.runner is not None and not on and name not in self._busy:
                self._switched_itself_off(instance, host)
            elif instance.runs and host.runner is None:
                self._start(pool, name, lambda instance=instance, host=host: self._boot(instance, host))
            elif not instance.runs and host.runner is not None:
                self._start(pool, name, lambda name=name, host=host: self._halt(name, host))
            elif on and host.reboots != instance.reboots:
                self._start(pool, name, lambda instance=instance, host=host: self._reboot(instance, host))
        for name in self._hosts.keys() - wanted.instances.keys():
            self._start(pool, name, lambda name=name: self._remove(name))
        self._write(wanted)

    def _start(self, pool: ThreadPoolExecutor, name: str, work: Callable[[], None]) -> None:
        """Does something about a host, unless it is being worked on: then the next look sees what came of that."""
        with self._lock:
            if name in self._busy:
                return
            self._busy.add(name)

        def run() -> None:
            try:
                work()
            except (LabError, OSError):
                traceback.print_exc(file=sys.stderr)
            finally:
                with self._lock:
                    self._busy.discard(name)
                self.wake()

        pool.submit(run)

    def _boot(self, instance: plan.Instance, host: _Host) -> None:
        folder = self._files.host(instance.name)
        if not (folder / "disk.img").exists():
            folder.mkdir(parents=True, exist_ok=True)
            disk.make(folder, lambda root: cloud_init.write_root(root, instance), instance.disk_gib)
        host.reboots = instance.reboots
        host.runner = hosts.switch_on(self._files, self._lab, lab_host(instance), self._image, self._shared)

    def _halt(self, name: str, host: _Host) -> None:
        """As AWS does: asks it to, and cuts its power when it does not."""
        if hosts.leader(self._lab, name) is not None:
            hosts.run(self._lab, name, "systemctl", "--no-block", "poweroff")
            wait_for(lambda: None if host.runner is not None and host.runner.alive else True, _HALT_LIMIT_S)
        hosts.cut_power(self._lab, name)
        host.runner = None

    def _reboot(self, instance: plan.Instance, host: _Host) -> None:
        hosts.ask_to_reboot(self._files, self._lab, lab_host(instance))
        host.reboots = instance.reboots

    def _remove(self, name: str) -> None:
        hosts.cut_power(self._lab, name)
        if self._files.host(name).exists():
            shutil.rmtree(self._files.host(name))
        del self._hosts[name]

    def _switched_itself_off(self, instance: plan.Instance, host: _Host) -> None:
        hosts.cut_power(self._lab, instance.name)
        host.runner = None
        if instance.terminates:
            backend().terminate_instances([instance.name])
        else:
            backend().stop_instances([instance.name])
        self.wake()

    def _connect(self, wanted: plan.Plan) -> None:
        """Has the router know every instance, its public address, and what its security groups let through."""
        guests = [instance.guest for _, instance in sorted(wanted.instances.items()) if instance.runs]
        addresses = {guest.public for guest in guests if guest.public}
        rules = firewall.render(guests, wanted.groups)
        router = topology.aws_namespace(self._lab)
        if self._networks != set(wanted.networks):
            network.set_routes(router, "vpc", self._networks, set(wanted.networks))
            self._networks = set(wanted.networks)
        if rules != self._rules:
            network.run_in(router, "nft", "-f", "-", stdin=rules)
            self._rules = rules
        if addresses != self._addresses:
            network.set_addresses(router, "wan", self._addresses, addresses)
            self._addresses = addresses

    def _write(self, wanted: plan.Plan) -> None:
        found = [
            AwsHost(each.name, each.guest.private, each.guest.public or "", each.runs)
            for _, each in sorted(wanted.instances.items())
        ]
        if found != self._written:
            fresh = self._files.aws_hosts.with_suffix(".new")
            fresh.write_text(json.dumps([asdict(each) for each in found]))
            fresh.rename(self._files.aws_hosts)
            self._written = found


def lab_host(instance: plan.Instance) -> LabHost:
    """An instance as a host of the lab."""
    return topology.aws_host(instance.name, instance.guest.private)
