"""Who has no business in the cluster gets nothing of it: not by its ports, not by its overlay, not by Ray.

The cluster comes up on hosts whose owners drop everything but the two documented ports, one of them with an EasyTier
of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import network, operator, topology
from lab.paths import CLONE
from lab.polling import wait_for
from lab.stack import Stack
from tests.lab.cluster_fixtures import lab_with_stack, ok
from tests.lab.fault_fixtures import HEAD, Judge, judge_of

pytestmark = pytest.mark.long  # a full scan of every host

HOSTS = ("bootstrap", "cloud-1", "edge-1")
OVERLAY = {"bootstrap": "10.10.0.1", "cloud-1": "10.10.0.10", "edge-1": "10.10.0.11"}
SCAN = Path(__file__).with_name("port_scan.py")
WORKERS = Path(__file__).with_name("listening_workers.py")
LIBRARY = CLONE / "components" / "scripts" / "lib.sh"
LAUNCH = "/opt/rlinf-cloud-edge/libexec/launch.sh"
FOREIGN = "foreign-easytier.service"
OTHER_PORT = 45555

DOCUMENTED_PORTS_ONLY = """
table inet documented_ports {
  chain input {
    type filter hook input priority 0; policy drop;
    iifname { "lo", "et0" } accept
    ct state established,related accept
    tcp dport { 22, 11010 } accept
    udp dport 11010 accept
  }
}
"""


def start_foreign_easytier(stack: Stack, host: str) -> None:
    """Runs an EasyTier that is none of ours, with its RPC where EasyTier has it by default."""
    easytier = stack.lab.inventory()["cluster"]["overlay"]["easytier"]
    architecture = os.uname().machine
    url = easytier["url"].replace("{version}", easytier["version"]).replace("{arch}", architecture)
    ok(stack.lab.exec(host, "curl", "--fail", "--silent", "--output", "/tmp/foreign.zip", url))
    ok(stack.lab.exec(host, "unzip", "-q", "-j", "/tmp/foreign.zip", "-d", "/opt/foreign"))
    ok(stack.lab.exec(host, "chmod", "0755", "/opt/foreign/easytier-core", "/opt/foreign/easytier-cli"))
    settings = '[network_identity]\nnetwork_name = "foreign"\n[flags]\nno_tun = true\n'
    ok(
        stack.lab.exec(
            host, "tee", "/opt/foreign/config.toml", stdin=f'listeners = ["tcp://0.0.0.0:12010"]\n{settings}'
        )
    )
    ok(
        stack.lab.exec(
            host,
            *("systemd-run", f"--unit={FOREIGN}", "--setenv=ET_NETWORK_SECRET=theirs"),
            *("--setenv=ET_RPC_PORTAL=127.0.0.1:15888", "/opt/foreign/easytier-core", "-c", "/opt/foreign/config.toml"),
        )
    )


def main_pid(stack: Stack, host: str, unit: str) -> str:
    return ok(stack.lab.exec(host, "systemctl", "show", "--property=MainPID", "--value", unit)).strip()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-attackers", edges=1) as stack:
        for host in HOSTS:
            ok(stack.lab.exec(host, "nft", "-f", "-", stdin=DOCUMENTED_PORTS_ONLY))
        start_foreign_easytier(stack, "edge-1")
        yield stack


@pytest.fixture(scope="module")
def foreign_pid(stack: Stack) -> str:
    return main_pid(stack, "edge-1", FOREIGN)


@pytest.fixture(scope="module")
def judge(stack: Stack, foreign_pid: str) -> Judge:
    """Of the cluster, which is up from here on."""
    stack.up()
    return judge_of(stack)


@pytest.fixture(scope="module")
def listeners(stack: Stack, judge: Judge) -> Generator[dict[str, dict[str, int]], None, None]:
    """Overlay address to the ports of a worker there; hosts have no firewall of their own, the head a web server."""
    for host in HOSTS:
        ok(stack.lab.exec(host, "nft", "delete", "table", "inet", "documented_ports"))
    ok(stack.lab.exec(HEAD, "systemd-run", "--unit=others", "python3", "-m", "http.server", str(OTHER_PORT)))
    ok(stack.lab.exec(HEAD, "tee", "/tmp/listening_workers.py", stdin=WORKERS.read_text()))
    yield json.loads(ok(stack.lab.exec(HEAD, LAUNCH, "python", "/tmp/listening_workers.py")).splitlines()[-1])
    stack.lab.exec(HEAD, "systemctl", "stop", "others")


def open_ports(stack: Stack, address: str, *, inside: int | None = None) -> list[int]:
    """The TCP ports that answer, asked from the public segment, or from the network of the edge of that number."""
    command = [sys.executable, str(SCAN), address]
    if inside is None:
        return json.loads(ok(stack.lab.run(*command)))
    return json.loads(network.run_in(topology.router_namespace(stack.lab.name, inside), *command))


class TestDocumentedPorts:
    """ssh and EasyTier's port are all that a host must let in."""

    def test_with_all_else_dropped_a_task_runs_on_every_node(self, judge: Judge) -> None:
        assert judge.whole == "2 of 2 nodes 0=10.10.0.10 1=10.10.0.11"
        assert judge.ask() == judge.whole

    def test_another_easytier_on_the_host_is_neither_asked_nor_harmed(
        self, stack: Stack, judge: Judge, foreign_pid: str
    ) -> None:
        assert main_pid(stack, "edge-1", FOREIGN) == foreign_pid != "0"
        told = ok(stack.lab.exec("edge-1", "ss", "-Hltnp"))
        ours = f"pid={main_pid(stack, 'edge-1', 'rlinf-easytier.service')},"
        rpc = {line.split()[3] for line in told.splitlines() if ours in line and ":159" in line.split()[3]}
        assert rpc == {"127.0.0.1:15910"}
        theirs = [line.split()[3] for line in told.splitlines() if f"pid={foreign_pid}," in line]
        assert "127.0.0.1:15888" in theirs
        scripts = stack.lab.exec("edge-1", "grep", "-rE", "easytier-cli +[^-]", "/opt/rlinf-cloud-edge/libexec")
        assert scripts.stdout == "", "without -p, easytier-cli asks whoever has port 15888"


class TestPorts:
    """From outside, ssh and EasyTier's port answer, whatever Ray's workers listen on. What is not ours is let be."""

    def test_a_worker_answers_on_the_overlay(self, stack: Stack, listeners: dict[str, dict[str, int]]) -> None:
        for asker, asked in (("cloud-1", "10.10.0.11"), ("edge-1", "10.10.0.10")):
            ports = listeners[asked]
            assert ports["tcp"] > 30000, "the worker is to have an ephemeral port"
            assert asks_tcp(stack, asker, asked, ports["tcp"])
            assert asks_udp(stack, asker, asked, ports["udp"])

    def test_from_the_public_segment_the_bootstrap_answers_on_two_ports(
        self, stack: Stack, listeners: dict[str, dict[str, int]]
    ) -> None:
        assert open_ports(stack, topology.BOOTSTRAP_ADDRESS) == [22, 11010]

    def test_from_the_public_segment_a_cloud_node_answers_on_two_ports_and_on_what_is_not_ours(
        self, stack: Stack, listeners: dict[str, dict[str, int]]
    ) -> None:
        address = stack.lab.lab.host(HEAD).address
        assert open_ports(stack, address) == [22, 11010, OTHER_PORT]
        assert not asks_udp(stack, "bootstrap", address, listeners["10.10.0.10"]["udp"])

    def test_from_its_own_network_an_edge_answers_on_two_ports_and_on_what_is_not_ours(
        self, stack: Stack, listeners: dict[str, dict[str, int]]
    ) -> None:
        address = stack.lab.lab.host("edge-1").address
        assert open_ports(stack, address, inside=1) == [22, 11010, 12010]

    def test_a_neighbour_who_sends_to_the_overlay_address_finds_no_more(
        self, stack: Stack, listeners: dict[str, dict[str, int]]
    ) -> None:
        namespace = topology.router_namespace(stack.lab.name, 1)
        address = stack.lab.lab.host("edge-1").address
        network.run_in(namespace, "ip", "route", "add", "10.10.0.11/32", "via", address)
        try:
            assert open_ports(stack, "10.10.0.11", inside=1) == [22, 11010, 12010]
        finally:
            network.run_in(namespace, "ip", "route", "del", "10.10.0.11/32")

    def test_a_worker_still_gets_answers_from_elsewhere(
        self, stack: Stack, listeners: dict[str, dict[str, int]]
    ) -> None:
        code = (
            "import ray, urllib.request\n"
            "ray.init('auto', logging_level=40, log_to_driver=False)\n"
            "fetch = ray.remote(num_cpus=0)(lambda url: urllib.request.urlopen(url, timeout=10).status)\n"
            f"print(ray.get(fetch.remote('http://{topology.MIRROR_ADDRESS}/')))\n"
        )
        assert ok(stack.lab.exec(HEAD, LAUNCH, "python", "-c", code)).splitlines()[-1] == "200"


def asks_tcp(stack: Stack, asker: str, address: str, port: int) -> bool:
    code = f"import socket; print(socket.create_connection(('{address}', {port}), 3).recv(8))"
    return stack.lab.exec(asker, "python3", "-c", code).returncode == 0


def asks_udp(stack: Stack, asker: str, address: str, port: int) -> bool:
    code = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)\n"
        f"s.connect(('{address}', {port}))\n"
        "for attempt in range(3):\n"
        "    s.send(b'x')\n"
        "    try: s.recv(8)\n"
        "    except TimeoutError: continue\n"
        "    raise SystemExit(0)\n"
        "raise SystemExit(1)\n"
    )
    return stack.lab.exec(asker, "python3", "-c", code).returncode == 0


class TestStrangers:
    """Without the secret, nobody gets into the overlay, and nobody in it gets at Ray."""

    @pytest.mark.parametrize("token", [{}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}])
    def test_a_driver_without_the_token_can_not_use_ray(
        self, stack: Stack, judge: Judge, token: dict[str, str]
    ) -> None:
        python = ok(stack.lab.exec("edge-1", "bash", "-c", "echo /opt/rlinf-cloud-edge/ray-*/bin/python")).strip()
        code = (
            "import ray; ray.init('10.10.0.10:6379', log_to_driver=False); "
            "print('ran', ray.get(ray.remote(lambda: 42).remote()))"
        )
        variables = [f"{name}={value}" for name, value in token.items()]
        done = stack.lab.exec("edge-1", "env", *variables, "timeout", "60", python, "-c", code, user="debian")
        assert done.returncode not in (0, 124)
        assert "ran" not in done.stdout
        assert "authenticat" in (done.stdout + done.stderr).lower()

    def test_a_node_without_the_network_secret_is_not_in_the_overlay(
        self, stack: Stack, judge: Judge, tmp_path: Path
    ) -> None:
        secret = stack.pulumi("config", "get", "networkSecret").strip()
        core = unpacked_core(stack, tmp_path)
        with intruder(stack, core, secret):
            assert wait_for(lambda: reaches_bootstrap(stack), 30), "with the secret, this way in works"
        with intruder(stack, core, "some-other-secret-of-the-right-length"):
            assert wait_for(lambda: reaches_bootstrap(stack), 15) is None


def reaches_bootstrap(stack: Stack) -> bool | None:
    """Whether the bootstrap's echo service on the overlay answers the operator's machine."""
    passes = f". {LIBRARY}; payload_passes {OVERLAY['bootstrap']} 11009"
    return stack.lab.run("bash", "-c", passes).returncode == 0 or None


def unpacked_core(stack: Stack, folder: Path) -> Path:
    """easytier-core, on this machine."""
    archive = next((stack.lab.lab.cache.mirror / "easytier").rglob("*.zip"))
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    core = next(folder.rglob("easytier-core"))
    core.chmod(0o755)
    return core


@contextmanager
def intruder(stack: Stack, core: Path, secret: str) -> Generator[None, None, None]:
    """An EasyTier on the operator's machine that knows all of our settings, and this secret."""
    config = core.parent / "intruder.toml"
    config.write_text(
        'hostname = "intruder"\nipv4 = "10.10.0.99/24"\nlisteners = []\n'
        '[network_identity]\nnetwork_name = "rlinf-cloud-edge"\n'
        f'[[peer]]\nuri = "tcp://{topology.BOOTSTRAP_ADDRESS}:11010"\n'
        '[flags]\ndev_name = "intruder0"\nmtu = 1380\nprivate_mode = true\n'
    )
    environment = {**stack.lab.env(), "ET_NETWORK_SECRET": secret, "ET_RPC_PORTAL": "127.0.0.1:15999"}
    command = operator.command(stack.lab.name, [str(core), "-c", str(config)])
    with (core.parent / "intruder.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        running.kill()
        running.wait()
