"""What the two executables are promised to be: options, exit codes, listeners, the RPC portal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import zipfile
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.contract.easytier_harness import (
    OVERLAY,
    PUBLIC,
    RPC_PORT,
    SECRET,
    Core,
    Host,
    Release,
    config,
    wait_for,
)

pytest_plugins = ("tests.contract.easytier_fixtures",)
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for TUN devices and network namespaces"),
]


@contextmanager
def held(host: Host, kind: str, port: int) -> Generator[None]:
    """Keeps a port of a host busy with a program that never answers."""
    script = (
        "import socket,sys\n"
        f"s = socket.socket(socket.AF_INET, socket.SOCK_{kind})\n"
        f"s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, '{kind}' == 'STREAM')\n"
        f"s.bind(('0.0.0.0', {port}))\n"
        f"'{kind}' == 'STREAM' and s.listen()\n"
        "print('ready', flush=True)\nsys.stdin.read()\n"
    )
    command = ["ip", "netns", "exec", host.namespace, "/usr/bin/python3", "-I", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        try:
            assert holder.stdout.readline() == b"ready\n"
            yield
        finally:
            holder.stdin.close()


def fails(core: Core, limit: float = 10.0) -> str:
    """Asserts that it ends with 1 and a reason, leaving no device; what it wrote."""
    assert core.wait(limit) == 1, core.output
    assert core.output.strip(), "a reason on standard error"
    assert core.host.device() is None
    assert SECRET not in core.output
    return core.output


def test_the_archive_has_upstreams_layout(release: Release) -> None:
    with zipfile.ZipFile(release.archive) as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o111 for entry in archive.infolist()}
    assert modes.get("easytier-linux-x86_64/easytier-core") == 0o111
    assert modes.get("easytier-linux-x86_64/easytier-cli") == 0o111


def test_both_executables_say_their_version(release: Release) -> None:
    for program in (release.core, release.cli):
        done = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, env={})
        assert re.fullmatch(rf"{program.name} 2\.6\.4(-\S+)?\n", done.stdout)


@pytest.mark.parametrize("program", ["easytier-core", "easytier-cli"])
def test_help_is_there_and_an_unknown_flag_is_a_fault_of_usage(program: str, release: Release) -> None:
    assert subprocess.run([release.folder / program, "-h"], check=False, capture_output=True).returncode == 0
    done = subprocess.run([release.folder / program, "--no-such-flag"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--no-such-flag" in done.stderr


def test_the_flags_of_the_guide_make_the_same_network(bootstrap: Host, edge: Host) -> None:
    common = [
        "--network-name",
        "guide",
        "--network-secret",
        SECRET,
        "--private-mode",
        "true",
        "--dev-name",
        "et0",
    ]
    bootstrap.up(None, "--hostname", "bootstrap", "--ipv4", OVERLAY["bootstrap"], "-l", "11010", *common, secret=None)
    peer = f"tcp://{PUBLIC['bootstrap']}:11010"
    edge.up(None, "--hostname", "edge-1", "--ipv4", OVERLAY["edge-1"], "-p", peer, *common, secret=None)
    wait_for("the edge reaches the bootstrap", lambda: edge.send(OVERLAY["bootstrap"]) is not None)
    assert edge.device() == {"mtu": 1360, "addresses": ["10.10.0.11/24"]}


def test_flags_beat_variables_and_both_beat_the_file(bootstrap: Host) -> None:
    bootstrap.up(
        config("bootstrap"),
        "--hostname",
        "from-flag",
        environment={"ET_HOSTNAME": "from-variable", "ET_DEV_NAME": "et0", "ET_MTU": "1200"},
    )
    assert list(bootstrap.peers() or {}) == ["from-flag"]
    assert (bootstrap.device() or {})["mtu"] == 1180


def test_a_host_name_is_cut_to_32_characters(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap", hostname="n" * 40))
    assert list(bootstrap.peers() or {}) == ["n" * 32]


def test_names_in_the_file_are_expanded_unless_told_otherwise(bootstrap: Host) -> None:
    odd = config("bootstrap", hostname="a$WHO'${WHO}")
    bootstrap.up(odd, environment={"WHO": "x"})
    assert list(bootstrap.peers() or {}) == ["ax'x"]
    bootstrap.stop()
    bootstrap.up(odd, "--disable-env-parsing", environment={"WHO": "x"})
    assert list(bootstrap.peers() or {}) == ["a$WHO'${WHO}"]


def test_unknown_keys_are_accepted(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap", no_such_key=1, flags={"no_such_flag": True}))


def test_a_bad_address_in_the_file_means_no_device_but_on_the_command_line_it_is_an_error(
    bootstrap: Host,
) -> None:
    bad = "10.10.0.300"
    core = bootstrap.start(config("bootstrap", ipv4=bad))
    wait_for("the portal answers", lambda: bootstrap.peers() is not None)
    assert bootstrap.device() is None
    assert core.alive
    bootstrap.stop()
    assert bad in fails(bootstrap.start(config("bootstrap"), "--ipv4", bad))


def test_listeners_of_the_file_stay_as_they_are_when_the_secret_comes_from_the_environment(
    bootstrap: Host,
) -> None:
    bootstrap.up(config("bootstrap", flags={"enable_ipv6": False}))
    assert bootstrap.listening("tcp") == {"0.0.0.0:11010", f"127.0.0.1:{RPC_PORT}"}
    assert "0.0.0.0:11010" in bootstrap.listening("udp")
    assert not {f"0.0.0.0:{port}" for port in (11011, 11012)} & bootstrap.listening("udp")


def test_an_empty_list_of_listeners_opens_none(edge: Host) -> None:
    edge.up(config("edge-1", listeners=[]))
    assert edge.listening("tcp") == {f"127.0.0.1:{RPC_PORT}"}
    assert not {address for address in edge.listening("udp") if re.search(r":1101\d$", address)}


def test_without_the_key_any_network_option_opens_the_full_default_set(edge: Host) -> None:
    edge.up(config("edge-1", listeners=None))
    assert {f"0.0.0.0:{port}" for port in (11010, 11011, 11012)} <= edge.listening("tcp")
    assert {f"0.0.0.0:{port}" for port in (11010, 11011, 11012)} <= edge.listening("udp")


def test_without_the_key_and_without_options_no_listener_is_opened(edge: Host) -> None:
    identity = {"network_name": "rlinf-cloud-edge", "network_secret": SECRET}
    edge.up(config("edge-1", listeners=None, network_identity=identity), secret=None)
    assert edge.listening("tcp") == {f"127.0.0.1:{RPC_PORT}"}


@pytest.mark.parametrize(("kind", "scheme"), [("STREAM", "tcp"), ("DGRAM", "udp")])
def test_a_busy_listener_ends_it_with_1(kind: str, scheme: str, bootstrap: Host) -> None:
    with held(bootstrap, kind, 11010):
        fails(bootstrap.start(config("bootstrap", listeners=[f"{scheme}://0.0.0.0:11010"])))


def test_a_device_name_of_16_bytes_ends_it_with_1_and_15_are_fine(bootstrap: Host) -> None:
    fails(bootstrap.start(config("bootstrap", flags={"dev_name": "d" * 16})))
    core = bootstrap.start(config("bootstrap", flags={"dev_name": "d" * 15}))
    wait_for("the device is there", lambda: bootstrap.device("d" * 15))
    assert core.end() == 0


def test_a_device_name_in_use_ends_it_with_1(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap"))
    second = bootstrap.start(config("bootstrap", listeners=[]), environment={"ET_RPC_PORTAL": "127.0.0.1:15999"})
    assert second.wait() == 1
    assert second.output.strip()


def test_without_a_tun_device_it_ends_with_1(edge: Host) -> None:
    hide = 'mount -t tmpfs -o nodev none /dev/net && exec "$@"'
    fails(edge.start(config("edge-1"), wrap=["unshare", "--mount", "sh", "-c", hide, "sh"]))


def test_without_the_capability_it_ends_with_1(edge: Host) -> None:
    fails(edge.start(config("edge-1"), wrap=["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]))


@pytest.mark.parametrize(
    "text", ["hostname = ", "[flags]\nmtu = 'wide'", "listeners = 'all'", "[[peer]]\nuri = 'nowhere'"]
)
def test_a_bad_configuration_ends_it_with_an_error(text: str, edge: Host) -> None:
    file = edge.folder / "bad.toml"
    file.write_text(text)
    core = edge.start(None, "--config-file", str(file))
    assert core.wait() not in (0, None)
    assert core.output.strip()
    assert SECRET not in core.output


def test_a_missing_configuration_ends_it_with_1(edge: Host) -> None:
    assert "no-such-file" in fails(edge.start(None, "--config-file", "/no-such-file.toml"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_the_device_is_gone(number: signal.Signals, edge: Host) -> None:
    core = edge.up(config("edge-1"))
    assert core.end(number) == 0
    assert edge.device() is None
    assert SECRET not in core.output


def test_a_signal_ends_it_with_peers_connected_and_while_they_are_away(bootstrap: Host, edge: Host) -> None:
    first, second = bootstrap.up(config("bootstrap")), edge.up(config("edge-1"))
    wait_for("the edge has joined", lambda: edge.sees("bootstrap"))
    assert first.end() == 0
    wait_for("the edge is alone", edge.sees)
    assert second.end() == 0
    assert bootstrap.device() is None
    assert edge.device() is None


def test_many_starts_and_stops_leave_nothing(edge: Host) -> None:
    before = edge.processes()
    for _ in range(10):
        assert edge.up(config("edge-1")).end() == 0
        assert edge.device() is None
    assert edge.processes() == before


def test_the_portal_is_on_loopback_only(bootstrap: Host, head: Host) -> None:
    bootstrap.up(config("bootstrap"))
    assert {address for address in bootstrap.listening("tcp") if address.endswith(f":{RPC_PORT}")} == {
        f"127.0.0.1:{RPC_PORT}"
    }
    asked = head.run(head.release.cli, "-p", f"{PUBLIC['bootstrap']}:{RPC_PORT}", "peer")
    assert asked.returncode == 1


def test_a_portal_that_is_given_and_busy_ends_it_with_1_before_anything_is_opened(bootstrap: Host) -> None:
    with held(bootstrap, "STREAM", RPC_PORT):
        fails(bootstrap.start(config("bootstrap")))


def test_a_portal_left_open_takes_the_first_free_port_of_the_defaults(bootstrap: Host) -> None:
    with held(bootstrap, "STREAM", RPC_PORT):
        bootstrap.start(config("bootstrap"), environment={"ET_RPC_PORTAL": "127.0.0.1:0"})
        wait_for("the portal is open", lambda: f"127.0.0.1:{RPC_PORT + 1}" in bootstrap.listening("tcp"))
        answered = bootstrap.run(bootstrap.release.cli, "-p", f"127.0.0.1:{RPC_PORT + 1}", "-o", "json", "peer")
        assert [row["hostname"] for row in json.loads(answered.stdout)] == ["bootstrap"]


def test_the_cli_exits_with_1_when_nobody_answers(edge: Host) -> None:
    done = edge.run(edge.release.cli, "-p", f"127.0.0.1:{RPC_PORT}", "-o", "json", "peer")
    assert done.returncode == 1
    assert not done.stdout
    assert done.stderr.strip()


def test_the_cli_exits_with_1_when_another_program_holds_the_portal(edge: Host) -> None:
    with held(edge, "STREAM", RPC_PORT):
        done = edge.run(edge.release.cli, "-p", f"127.0.0.1:{RPC_PORT}", "-o", "json", "peer", limit=60)
    assert done.returncode == 1
    assert done.stderr.strip()


def test_a_stranger_on_the_portal_harms_nobody(bootstrap: Host) -> None:
    core = bootstrap.up(config("bootstrap"))
    script = (
        "import socket\n"
        f"s = [socket.create_connection(('127.0.0.1', {RPC_PORT})) for _ in range(20)]\n"
        "s[0].sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); s[1].sendall(bytes(100000)); s[2].sendall(b'{}\\n')\n"
        "import subprocess, sys\n"
        f"sys.exit(subprocess.run([{str(bootstrap.release.cli)!r}, 'peer']).returncode)\n"
    )
    assert bootstrap.run("/usr/bin/python3", "-I", "-c", script).returncode == 0
    assert core.alive


@pytest.mark.parametrize("question", ["peer", "route", "node"])
def test_the_cli_answers_as_a_table_and_as_json(question: str, bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap"))
    assert "10.10.0.1" in bootstrap.run(bootstrap.release.cli, question).stdout
    json.loads(bootstrap.run(bootstrap.release.cli, "-o", "json", question).stdout)


def test_a_reader_of_the_log_that_goes_away_does_not_stop_the_network(bootstrap: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    deaf = 'exec "$@" > >(true) 2>&1'
    variables = {"ET_CONSOLE_LOG_LEVEL": "info", "PATH": "/usr/bin:/bin"}
    core = edge.start(config("edge-1"), environment=variables, wrap=["bash", "-c", deaf, "bash"])
    wait_for("the edge reaches the bootstrap", lambda: edge.send(OVERLAY["bootstrap"]) is not None)
    assert core.end() == 0


def test_nothing_is_written_but_where_it_is_told(edge: Host, release: Release) -> None:
    before = sorted(release.folder.rglob("*"))
    home = edge.folder / "home"
    home.mkdir()
    core = edge.up(config("edge-1"), environment={"HOME": str(home), "TMPDIR": str(home)})
    assert core.end() == 0
    assert sorted(release.folder.rglob("*")) == before
    assert not list(home.iterdir())
