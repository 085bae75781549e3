"""The lab itself: hosts that are real, a network that is closed, faults that can be undone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from lab import faults, hosts, network, topology
from lab.errors import LabError
from lab.polling import wait_for
from lab.session import Session

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2")

pytestmark = pytest.mark.root


def answers(lab: Session, host: str, address: str, port: int) -> bool:
    """Whether a TCP connection from a host is accepted, or one from the operator where host is that."""
    command = ["timeout", "2", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"]
    done = lab.run(*command) if host == topology.OPERATOR else lab.exec(host, *command)
    return done.returncode == 0


@contextmanager
def listening(lab: Session, host: str, port: int) -> Generator[None, None, None]:
    """A web server on a host for the length of the block."""
    unit = f"test-listener-{port}"
    server = ["systemd-run", f"--unit={unit}", "--collect", "python3", "-m", "http.server", str(port)]
    assert lab.exec(host, *server).returncode == 0
    try:
        assert wait_for(lambda: answers(lab, host, "127.0.0.1", port) or None, 10)
        yield
    finally:
        lab.exec(host, "systemctl", "stop", unit)


def addresses(lab: Session, host: str) -> list[str]:
    """The IPv4 addresses of a host's cable, with prefix lengths."""
    devices = json.loads(lab.exec(host, "ip", "-j", "-4", "address", "show", "dev", "host0").stdout)
    return [f"{entry['local']}/{entry['prefixlen']}" for device in devices for entry in device["addr_info"]]


class TestHosts:
    """Hosts are booted Debian systems as a cloud would hand them out."""

    @pytest.mark.parametrize("host", HOSTS)
    def test_a_host_is_booted_by_systemd_and_nothing_on_it_failed(self, lab: Session, host: str) -> None:
        assert lab.exec(host, "systemctl", "is-system-running").stdout.strip() == "running"
        assert lab.exec(host, "ps", "-p", "1", "-o", "comm=").stdout.strip() == "systemd"

    @pytest.mark.parametrize("host", HOSTS)
    def test_a_host_knows_its_name_and_localhost_without_a_name_server(self, lab: Session, host: str) -> None:
        assert lab.exec(host, "hostname").stdout.strip() == host
        assert lab.exec(host, "getent", "ahostsv4", "localhost").stdout.split()[0] == "127.0.0.1"
        assert lab.exec(host, "getent", "ahostsv4", host).stdout.split()[0] == lab.lab.host(host).address
        assert lab.exec(host, "getent", "hosts", "example.com", limit=5).returncode != 0

    @pytest.mark.parametrize("host", HOSTS)
    def test_the_operator_logs_in_by_key_as_debian_and_becomes_root_without_a_password(
        self, lab: Session, host: str
    ) -> None:
        done = lab.run("ssh", host, "id -un; sudo -n id -un; hostname")
        assert done.stdout.split() == ["debian", "root", host]

    def test_root_and_passwords_are_refused(self, lab: Session) -> None:
        assert "Permission denied (publickey)" in lab.run("ssh", "root@cloud-1", "true").stderr
        without_key = lab.run("ssh", "-o", "IdentityAgent=none", "-o", "BatchMode=yes", "cloud-1", "true")
        assert "Permission denied (publickey)" in without_key.stderr

    @pytest.mark.parametrize("host", HOSTS)
    def test_a_host_can_make_a_tun_device_and_nftables_rules(self, lab: Session, host: str) -> None:
        made = lab.exec(host, "sh", "-c", "ip tuntap add t0 mode tun && ip link delete t0 && nft list ruleset")
        assert made.returncode == 0, made.stderr

    def test_hosts_have_identities_of_their_own(self, lab: Session) -> None:
        for file in ("/etc/machine-id", "/etc/ssh/ssh_host_ed25519_key.pub", "/sys/class/net/host0/address"):
            assert len({lab.exec(host, "cat", file).stdout for host in HOSTS}) == len(HOSTS), file

    def test_the_printed_host_keys_are_those_sshd_presents(self, lab: Session) -> None:
        cluster = lab.inventory()["cluster"]
        scanned = lab.run("ssh-keyscan", "-t", "ed25519", "203.0.113.5", "203.0.113.10").stdout
        assert f"203.0.113.5 {cluster['bootstrap']['ssh']['host_key']}" in scanned
        assert f"203.0.113.10 {cluster['cloud'][0]['ssh']['host_key']}" in scanned

    def test_rlinf_is_seen_read_only_also_when_it_comes_later(self, lab: Session) -> None:
        later = lab.lab.cache.rlinf / f"seen-by-{lab.name}"
        later.touch()
        try:
            assert lab.exec("edge-1", "test", "-e", f"/opt/rlinf/{later.name}").returncode == 0
            assert "Read-only" in lab.exec("edge-1", "touch", "/opt/rlinf/x").stderr
        finally:
            later.unlink()


class TestNetwork:
    """The network is that of the guide: a public segment, edges behind NAT, and no way out."""

    @pytest.mark.parametrize("host", HOSTS)
    def test_no_host_has_a_route_out(self, lab: Session, host: str) -> None:
        done = lab.exec(host, "ping", "-c", "1", "-W", "2", "192.0.2.1")
        assert done.returncode != 0
        assert "unreachable" in f"{done.stdout}{done.stderr}".lower()

    def test_no_other_namespace_of_the_lab_has_a_default_route(self, lab: Session) -> None:
        namespaces = network.namespaces_of(lab.name)
        assert len(namespaces) == 5
        for namespace in namespaces:
            assert "default" not in network.run_in(namespace, "ip", "route", "show", "table", "all"), namespace

    def test_an_edge_reaches_the_public_segment_and_is_seen_as_its_router(self, lab: Session) -> None:
        with listening(lab, "cloud-1", 8001):
            assert lab.exec("edge-2", "curl", "-sf", "-m", "5", "http://203.0.113.10:8001/").returncode == 0
            journal = lab.exec("cloud-1", "journalctl", "-o", "cat", "-u", "test-listener-8001").stdout
        assert "203.0.113.102" in journal
        assert "192.168.2.20" not in journal

    def test_nothing_unsolicited_passes_a_router(self, lab: Session) -> None:
        for source in ("cloud-1", topology.OPERATOR, "edge-2"):
            for address in ("192.168.1.20", "203.0.113.101"):
                assert not answers(lab, source, address, 22), f"{source} reaches {address}"

    def test_not_even_with_a_route_to_the_network_behind_it(self, lab: Session) -> None:
        lab.exec("cloud-1", "ip", "route", "add", "192.168.1.0/24", "via", "203.0.113.101")
        try:
            assert not answers(lab, "cloud-1", "192.168.1.20", 22)
        finally:
            lab.exec("cloud-1", "ip", "route", "delete", "192.168.1.0/24")

    def test_the_bootstrap_may_log_in_to_an_edge_and_nothing_else(self, lab: Session) -> None:
        with listening(lab, "edge-1", 8002):
            assert answers(lab, "edge-1", "192.168.1.20", 8002)
            assert answers(lab, "bootstrap", "192.168.1.20", 22)
            assert not answers(lab, "bootstrap", "192.168.1.20", 8002)
            assert lab.exec("bootstrap", "ping", "-c", "1", "-W", "1", "192.168.1.20").returncode != 0

    def test_edges_do_not_reach_each_other(self, lab: Session) -> None:
        assert not answers(lab, "edge-1", "192.168.2.20", 22)

    def test_the_mirror_serves_every_host_whole_files_and_ranges(self, lab: Session) -> None:
        served = lab.lab.cache.mirror / f"test-{lab.name}.bin"
        served.write_bytes(bytes(range(256)) * 64)
        url = f"http://203.0.113.80/{served.name}"
        try:
            for host in HOSTS:
                whole = lab.exec(host, "sh", "-c", f"curl -sf {url} | sha256sum; curl -sf -r 256-511 {url} | wc -c")
                assert whole.stdout.split()[0] == hashlib.sha256(served.read_bytes()).hexdigest()
                assert whole.stdout.split()[-1] == "256"
        finally:
            served.unlink()


class TestExec:
    """`exec` runs a command as a person at the host's console would."""

    def test_the_environment_is_the_hosts_not_that_of_this_machine(
        self, lab: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ONLY_HERE", "1")
        names = {line.split("=")[0] for line in lab.exec("edge-1", "env").stdout.splitlines()}
        assert names <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"}
        assert lab.exec("edge-1", "sh", "-c", "pwd; id -un", user="debian").stdout.split() == ["/home/debian", "debian"]

    def test_input_and_exit_code_pass_through(self, lab: Session) -> None:
        done = lab.exec("edge-1", "sh", "-c", "cat; exit 7", stdin="hello")
        assert (done.stdout, done.returncode) == ("hello", 7)

    def test_an_unknown_host_or_user_is_named(self, lab: Session) -> None:
        with pytest.raises(LabError, match="no host is called edge-9; the hosts are bootstrap, cloud-1, edge-1"):
            lab.exec("edge-9", "true")
        with pytest.raises(LabError, match="no user nobody-here"):
            lab.exec("edge-1", "true", user="nobody-here")

    def test_the_operator_is_in_the_lab_and_has_the_key(self, lab: Session) -> None:
        assert "203.0.113.100" in lab.run("ip", "-br", "address").stdout
        assert "ED25519" in lab.run("ssh-add", "-l").stdout


class TestFaults:
    """Every fault is real, hits one host, and can be undone."""

    def test_a_rebooted_host_is_the_same_one_again(self, lab: Session) -> None:
        host = lab.lab.host("edge-1")
        boot_id = lab.exec("edge-1", "cat", "/proc/sys/kernel/random/boot_id").stdout
        lab.exec("edge-1", "touch", "/root/kept")
        before = addresses(lab, "edge-1")
        leader = hosts.running_leader(lab.name, "edge-1")
        faults.reboot(lab.lab, host)
        assert lab.exec("edge-1", "cat", "/proc/sys/kernel/random/boot_id").stdout != boot_id
        assert hosts.running_leader(lab.name, "edge-1") != leader
        assert addresses(lab, "edge-1") == before == ["192.168.1.20/24"]
        assert lab.exec("edge-1", "rm", "/root/kept").returncode == 0
        assert lab.exec("edge-1", "systemctl", "is-system-running").stdout.strip() == "running"

    def test_a_host_without_power_is_gone_and_comes_back_with_its_disk(self, lab: Session) -> None:
        host = lab.lab.host("cloud-1")
        lab.exec("cloud-1", "sh", "-c", "touch /root/kept && sync")
        faults.stop_host(lab.lab, host)
        try:
            assert not answers(lab, topology.OPERATOR, "203.0.113.10", 22)
            with pytest.raises(LabError, match="cloud-1 is not running"):
                lab.exec("cloud-1", "true")
        finally:
            faults.start_host(lab.lab, host)
        assert lab.exec("cloud-1", "rm", "/root/kept").returncode == 0
        assert answers(lab, topology.OPERATOR, "203.0.113.10", 22)
        with pytest.raises(LabError, match="is on already"):
            faults.start_host(lab.lab, host)

    def test_a_cable_out_cuts_off_one_host_until_it_is_in_again(self, lab: Session) -> None:
        host = lab.lab.host("cloud-1")
        faults.link_down(lab.lab, host)
        try:
            assert lab.exec("cloud-1", "cat", "/sys/class/net/host0/carrier").stdout.strip() == "0"
            assert not answers(lab, topology.OPERATOR, "203.0.113.10", 22)
            assert answers(lab, topology.OPERATOR, "203.0.113.5", 22)
        finally:
            faults.link_up(lab.lab, host)
        assert wait_for(lambda: answers(lab, topology.OPERATOR, "203.0.113.10", 22) or None, 15)

    def test_other_host_keys_are_refused_until_the_right_ones_are_back(self, lab: Session) -> None:
        host = lab.lab.host("edge-1")
        faults.wrong_host_key(lab.lab, host)
        try:
            assert "Host key verification failed" in lab.run("ssh", "edge-1", "true").stderr
            assert lab.run("ssh", "edge-2", "true").returncode == 0
        finally:
            faults.right_host_key(lab.lab, host)
        assert lab.run("ssh", "edge-1", "true").returncode == 0

    def test_a_full_disk_is_one_hosts_trouble(self, lab: Session) -> None:
        host = lab.lab.host("edge-1")
        faults.fill_disk(lab.lab, host, 0)
        try:
            assert "No space left" in lab.exec("edge-1", "cp", "/etc/hosts", "/root/new").stderr
            assert lab.exec("edge-2", "sh", "-c", "cp /etc/hosts /root/new && rm /root/new").returncode == 0
            image = lab.lab.files.host("edge-1") / "disk.img"
            assert image.stat().st_blocks * 512 < 1 << 30
        finally:
            faults.unfill_disk(lab.lab, host)
        assert lab.exec("edge-1", "sh", "-c", "cp /etc/hosts /root/new && rm /root/new").returncode == 0

    def test_a_blocked_port_is_silent_and_only_that_one(self, lab: Session) -> None:
        host = lab.lab.host("cloud-1")
        with listening(lab, "cloud-1", 8003), listening(lab, "cloud-1", 8004):
            faults.block_port(lab.lab, host, 8003, "tcp")
            try:
                assert not answers(lab, topology.OPERATOR, "203.0.113.10", 8003)
                assert answers(lab, topology.OPERATOR, "203.0.113.10", 8004)
                assert answers(lab, "cloud-1", "127.0.0.1", 8003)
            finally:
                faults.unblock_port(lab.lab, host, 8003, "tcp")
            assert answers(lab, topology.OPERATOR, "203.0.113.10", 8003)
        with pytest.raises(LabError, match="tcp port 8003 is not blocked on cloud-1"):
            faults.unblock_port(lab.lab, host, 8003, "tcp")

    def test_a_process_is_killed_on_the_host_it_was_meant_for(self, lab: Session) -> None:
        for host in ("edge-1", "edge-2"):
            lab.exec(host, "systemd-run", "--unit=victim", "--collect", "sleep", "600")
        faults.kill_process(lab.lab, lab.lab.host("edge-1"), "sleep", whole_command=False, signal="KILL")
        assert wait_for(lambda: lab.exec("edge-1", "systemctl", "is-active", "victim").returncode or None, 5)
        assert lab.exec("edge-2", "systemctl", "is-active", "victim").stdout.strip() == "active"
        faults.kill_process(lab.lab, lab.lab.host("edge-2"), "sleep 600", whole_command=True, signal="TERM")
        with pytest.raises(LabError, match="no process on edge-1 is called sleep"):
            faults.kill_process(lab.lab, lab.lab.host("edge-1"), "sleep", whole_command=False, signal="KILL")
