"""A small cloud-edge network for putting an EasyTier release through its paces, in namespaces of its own.

    bootstrap 203.0.113.5      head 203.0.113.10      public segment
                    |              |
    nat-1 203.0.113.101      nat-2 203.0.113.102      routers: masquerade outwards, drop what is unsolicited
        |                        |
    edge-1 192.168.1.20      edge-2 192.168.2.20

Namespaces are named `rce-et-<process>-<host>`; nothing is made in the namespace of the machine. Those of a
process that is no more are cleared by the next run. It knows nothing of what is expected of EasyTier: that is
in the tests.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

PREFIX = "rce-et-"
PAYLOAD = Path(__file__).with_name("easytier_payload.py")
PAYLOAD_PORT = 5201
RPC_PORT = 15888
SECRET = "canary-7f3a-secret"

PUBLIC = {"bootstrap": "203.0.113.5", "head": "203.0.113.10"}
EDGES = {"edge-1": 1, "edge-2": 2}
OVERLAY = {"bootstrap": "10.10.0.1", "head": "10.10.0.10", "edge-1": "10.10.0.11", "edge-2": "10.10.0.12"}
BOOTSTRAP_URL = f"tcp://{PUBLIC['bootstrap']}:11010"
HEAD_URL = f"tcp://{PUBLIC['head']}:11010"
ROUTER_RULES = """
table ip nat {
    chain outwards {
        type nat hook postrouting priority 100
        oifname "wan" masquerade
    }
}
table ip filter {
    chain through {
        type filter hook forward priority 0; policy drop
        ct state established,related accept
        iifname "lan" accept
    }
}
"""


def wait_for(what: str, condition: Callable[[], object], limit: float = 15.0) -> float:
    """Waits until a condition holds; the seconds that took.

    Raises:
        TimeoutError: it did not within `limit` seconds.
    """
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > limit:
            raise TimeoutError(f"not within {limit:.0f} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - started


def stays(condition: Callable[[], object], seconds: float = 4.0) -> bool:
    """Whether a condition holds at every look for so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not condition():
            return False
        time.sleep(0.1)
    return True


@dataclass(frozen=True)
class Release:
    """An unpacked release archive."""

    archive: Path
    folder: Path

    @classmethod
    def unpack(cls, archive: Path, into: Path) -> Release:
        """Unpacks an archive with the modes it gives its files."""
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                path = Path(opened.extract(entry, into))
                if mode := entry.external_attr >> 16 & 0o777:
                    path.chmod(mode)
        return cls(archive, into / "easytier-linux-x86_64")

    @property
    def core(self) -> Path:
        """`easytier-core`."""
        return self.folder / "easytier-core"

    @property
    def cli(self) -> Path:
        """`easytier-cli`."""
        return self.folder / "easytier-cli"


def config(host: str, **changes: object) -> dict[str, object]:
    """A host's configuration as the program writes it: no secret, listeners where others can reach them.

    Args:
        host: its name in the picture above.
        changes: keys to set, or to leave out where None; `flags` is merged.
    """
    flags = {"dev_name": "et0", "private_mode": True} | cast(dict[str, object], changes.pop("flags", {}))
    whole: dict[str, object] = {
        "hostname": host,
        "ipv4": OVERLAY[host],
        "listeners": ["tcp://0.0.0.0:11010", "udp://0.0.0.0:11010"] if host in PUBLIC else [],
        "network_identity": {"network_name": "rlinf-cloud-edge"},
        "peer": [] if host == "bootstrap" else [{"uri": BOOTSTRAP_URL}],
    }
    return {key: value for key, value in (whole | changes).items() if value is not None} | {"flags": flags}


def toml(table: Mapping[str, object]) -> str:
    """Writes a configuration as TOML: values, then tables and lists of tables."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not _is_table(value)]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", toml(cast(dict[str, object], value))]
        elif _is_table(value):
            for each in cast(list[dict[str, object]], value):
                lines += [f"[[{key}]]", toml(each)]
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in cast(list[object], value))
    )


@dataclass
class Core:
    """A running, or ended, `easytier-core` on one host."""

    host: Host
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    @property
    def output(self) -> str:
        """All it wrote, both streams."""
        return self.log.read_text("utf-8", "replace")

    def wait(self, limit: float = 10.0) -> int:
        """Its exit code, as soon as it ends."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"easytier-core on {self.host.name} did not end within {limit:.0f} s") from error

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal; the exit code."""
        self.process.send_signal(number)
        return self.wait()


@dataclass
class Host:
    """One host of the network: a namespace, its folder, and what runs there."""

    name: str
    namespace: str
    folder: Path
    release: Release
    running: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def run(self, *command: str | Path, limit: float = 30.0) -> subprocess.CompletedProcess[str]:
        """Runs a command on this host, whatever its exit code."""
        return subprocess.run(
            self._inside(*command),
            check=False,
            capture_output=True,
            text=True,
            timeout=limit,
            stdin=subprocess.DEVNULL,
        )

    def start(
        self,
        configuration: Mapping[str, object] | None,
        *arguments: str,
        secret: str | None = SECRET,
        environment: Mapping[str, str] | None = None,
        wrap: Sequence[str] = (),
    ) -> Core:
        """Starts `easytier-core` as the program's unit does, with only the environment that is said.

        Args:
            configuration: written to a file for `--config-file`; none for none.
            arguments: more of the command line.
            secret: for ET_NETWORK_SECRET; none for none.
            environment: more variables.
            wrap: a command that runs it.
        """
        variables = {"ET_CONSOLE_LOG_LEVEL": "warn", "ET_RPC_PORTAL": f"127.0.0.1:{RPC_PORT}"}
        variables |= {} if secret is None else {"ET_NETWORK_SECRET": secret}
        variables |= environment or {}
        options: list[str] = []
        if configuration is not None:
            file = self.folder / "easytier.toml"
            file.write_text(toml(configuration), "utf-8")
            options = ["--config-file", str(file)]
        log = self.folder / "easytier.log"
        command = self._inside(*wrap, self.release.core, *options, *arguments)
        with log.open("wb") as out:
            process = subprocess.Popen(command, env=variables, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        self.running.append(process)
        return Core(self, process, log)

    def up(self, configuration: Mapping[str, object] | None, *arguments: str, **more: object) -> Core:
        """Starts `easytier-core` and waits until its portal answers and its device is there."""
        core = self.start(configuration, *arguments, **more)  # pyright: ignore[reportArgumentType] - passed on
        wait_for(
            f"{self.name} is up:\n{core.output}",
            lambda: not core.alive or (self.device() and self.peers() is not None),
        )
        if not core.alive:
            raise AssertionError(f"easytier-core on {self.name} ended with {core.wait()}:\n{core.output}")
        return core

    def peers(self) -> dict[str, dict[str, str]] | None:
        """What `easytier-cli peer` lists, by host name; None where nobody answers."""
        done = self.run(self.release.cli, "-p", f"127.0.0.1:{RPC_PORT}", "-o", "json", "peer")
        if done.returncode:
            return None
        return {row["hostname"]: row for row in cast(list[dict[str, str]], json.loads(done.stdout))}

    def sees(self, *names: str) -> bool:
        """Whether this host's peer list is itself and these."""
        return set(self.peers() or {}) == {self.name, *names}

    def device(self, name: str = "et0") -> dict[str, object] | None:
        """The device: `mtu`, and `addresses` with prefix; None where there is none."""
        done = self.run("ip", "-json", "address", "show", "dev", name)
        if done.returncode:
            return None
        (link,) = cast(list[dict[str, object]], json.loads(done.stdout))
        infos = cast(list[dict[str, object]], link["addr_info"])
        return {
            "mtu": link["mtu"],
            "addresses": [f"{info['local']}/{info['prefixlen']}" for info in infos if info["family"] == "inet"],
        }

    def listening(self, protocol: str) -> set[str]:
        """What `easytier-core` listens on here: `address:port`. Protocol `tcp` or `udp`."""
        rows = self.run("ss", "-H", "-n", "-p", "-l", "-t" if protocol == "tcp" else "-u").stdout.splitlines()
        return {row.split()[3] for row in rows if "easytier" in row}

    def processes(self) -> set[str]:
        """The ids of the processes that run here."""
        command = ["ip", "netns", "pids", self.namespace]
        return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())

    def send(self, address: str, count: int = 5000, limit: float = 3.0) -> float | None:
        """Sends a TCP payload to a host that serves; the seconds it took, None if it did not pass.

        The default is several times the MTU.
        """
        sender = [sys.executable, "-I", PAYLOAD, "send", address, str(PAYLOAD_PORT), str(count), str(limit)]
        done = self.run(*sender, limit=limit * 20)
        return None if done.returncode else float(done.stdout)

    def stop(self) -> None:
        """Ends whatever runs here, at once."""
        for process in self.running:
            if process.poll() is None:
                process.kill()
        for process in self.running:
            process.wait()
        self.running.clear()

    def serve_payload(self) -> subprocess.Popen[bytes]:
        """Starts the receiving end of payloads, ready when this returns. It lives as long as the network."""
        command = self._inside(sys.executable, "-I", PAYLOAD, "serve", str(PAYLOAD_PORT))
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{self.name} does not serve payloads")
        return process

    def _inside(self, *command: str | Path) -> list[str | Path]:
        return ["ip", "netns", "exec", self.namespace, *command]


class Network:
    """The picture above, from `open` to `close`."""

    def __init__(self, folder: Path, release: Release) -> None:
        self._names = {name: f"{PREFIX}{os.getpid()}-{name}" for name in ("public", *PUBLIC, "nat-1", "nat-2", *EDGES)}
        self._servers: list[subprocess.Popen[bytes]] = []
        self.hosts = {name: Host(name, self._names[name], folder / name, release) for name in (*PUBLIC, *EDGES)}

    def open(self) -> None:
        """Makes the namespaces and what connects them, and a server of payloads on every host."""
        clear_abandoned()
        for host in self.hosts.values():
            host.folder.mkdir(parents=True)
        for namespace in self._names.values():
            _ip("netns", "add", namespace)
            _ip("-n", namespace, "link", "set", "lo", "up")
        public = self._names["public"]
        _ip("-n", public, "link", "add", "br0", "type", "bridge")
        _ip("-n", public, "link", "set", "br0", "up")
        for name, address in PUBLIC.items():
            self._plug(name, "eth0", f"{address}/24")
        for edge, number in EDGES.items():
            router = f"nat-{number}"
            self._plug(router, "wan", f"203.0.113.{100 + number}/24")
            _ip(
                "-n",
                self._names[router],
                "link",
                "add",
                "lan",
                "type",
                "veth",
                "peer",
                "eth0",
                "netns",
                self._names[edge],
            )
            _ip("-n", self._names[router], "address", "add", f"192.168.{number}.1/24", "dev", "lan")
            _ip("-n", self._names[router], "link", "set", "lan", "up")
            _ip("-n", self._names[edge], "address", "add", f"192.168.{number}.20/24", "dev", "eth0")
            _ip("-n", self._names[edge], "link", "set", "eth0", "up")
            _ip("-n", self._names[edge], "route", "add", "default", "via", f"192.168.{number}.1")
            inside = ["ip", "netns", "exec", self._names[router]]
            subprocess.run([*inside, "nft", "-f", "-"], check=True, input=ROUTER_RULES, text=True)
            subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        self._servers = [host.serve_payload() for host in self.hosts.values()]

    def stop_all(self) -> None:
        """Ends every `easytier-core`."""
        for host in self.hosts.values():
            host.stop()

    def close(self) -> None:
        """Ends what runs and removes the namespaces."""
        self.stop_all()
        for server in self._servers:
            server.kill()
            server.wait()
        for namespace in self._names.values():
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)

    def _plug(self, name: str, device: str, address: str) -> None:
        public, namespace = self._names["public"], self._names[name]
        _ip("-n", public, "link", "add", f"to-{name}", "type", "veth", "peer", device, "netns", namespace)
        _ip("-n", public, "link", "set", f"to-{name}", "master", "br0", "up")
        _ip("-n", namespace, "address", "add", address, "dev", device)
        _ip("-n", namespace, "link", "set", device, "up")


def clear_abandoned() -> None:
    """Removes namespaces of processes that are no more, and ends what still runs in them."""
    for namespace in _names_of(
        subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    ):
        owner = re.match(rf"{PREFIX}(\d+)-", namespace)
        if owner is None or Path("/proc", owner[1]).exists():
            continue
        inside = subprocess.run(["ip", "netns", "pids", namespace], check=False, capture_output=True, text=True)
        for process in inside.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


def _names_of(listing: str) -> Iterable[str]:
    return [line.split()[0] for line in listing.splitlines() if line.startswith(PREFIX)]


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
