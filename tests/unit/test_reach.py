"""How each host is reached: defaults, jumps, bastions and IPv6, and what is said of them to people and to ssh."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from components.outputs import nodes, ssh_config
from components.plan import make_plan
from config.load import parse
from config.models import Cluster
from config.reach import WayIn, way_in
from tests.example_settings import HOST_KEY, guide
from tests.settings_faults import only_fault

BASTION = {
    "address": "2001:db8::7",
    "user": "gate",
    "port": 2222,
    "key_file": "~/.ssh/the gate",
    "host_key": HOST_KEY,
}


def with_edge(**ssh: Any) -> dict[str, Any]:
    """The guide's settings with other `ssh` of the edge."""
    raw = guide()
    raw["edges"][0]["ssh"].update(ssh)
    return raw


def edge(cluster: Cluster) -> WayIn:
    """The way in to the edge."""
    way = way_in(cluster, cluster.edges[0])
    assert way is not None
    return way


def options(config: str, host: str, folder: Path) -> dict[str, str]:
    """What ssh itself makes of an ssh_config for a host."""
    file = folder / "config"
    file.write_text(config)
    told = subprocess.run(["ssh", "-G", "-F", file, host], capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ", 1) for line in told.splitlines() if " " in line)


class TestBastions:
    """A bastion is given in full, takes the defaults of `cluster.ssh`, and is reached directly."""

    def test_what_it_leaves_out_comes_from_the_defaults(self) -> None:
        raw = with_edge(jump={"address": "198.51.100.7"})
        raw["ssh"] |= {"port": 2200, "password_secret": "robots"}
        jump = edge(parse(raw)).jump
        assert jump is not None
        assert (jump.user, jump.port, jump.place) == ("debian", 2200, "198.51.100.7:2200")
        assert jump.credentials == parse(raw).ssh.credentials

    def test_it_is_part_of_what_makes_a_machine(self) -> None:
        assert edge(parse(with_edge(jump=BASTION))).endpoint == "192.168.1.20:22 through [2001:db8::7]:2222"

    def test_equal_private_addresses_behind_two_of_them_are_two_machines(self) -> None:
        raw = with_edge(jump=BASTION)
        other = {**BASTION, "address": "2001:db8::8"}
        raw["edges"].append(
            {"name": "edge-2", "overlay_ip": "10.10.0.12", "ssh": {"address": "192.168.1.20", "jump": other}}
        )
        parse(raw)
        raw["edges"][1]["ssh"]["jump"] = BASTION
        assert "edge-1 is reached at the same address and port" in only_fault(raw).rule

    def test_it_is_not_in_the_overlays_range(self) -> None:
        assert only_fault(with_edge(jump={"address": "10.10.0.77"})).key == "cluster.edges[0].ssh.jump.address"

    def test_its_host_key_is_one(self) -> None:
        fault = only_fault(with_edge(jump={**BASTION, "host_key": "AAAA"}))
        assert fault.key == "cluster.edges[0].ssh.jump.host_key"
        assert fault.fix.startswith("print it with: ssh-keyscan -t ed25519 -p 2222 2001:db8::7, ")

    def test_it_has_no_jump_of_its_own(self) -> None:
        fault = only_fault(with_edge(jump={**BASTION, "jump": "bootstrap"}))
        assert fault.key == "cluster.edges[0].ssh.jump.jump"

    def test_a_host_behind_one_is_no_jump_host(self) -> None:
        raw = guide()
        raw["cloud"][0]["ssh"]["jump"] = BASTION
        raw["edges"][0]["ssh"]["jump"] = "cloud-1"
        assert "cloud-1 itself is reached through 2001:db8::7" in only_fault(raw).rule


class TestSshConfig:
    """The output `ssh_config` is what Pulumi itself does, bastions included."""

    def test_a_bastion_has_a_block_that_hosts_jump_through(self, tmp_path: Path) -> None:
        raw = with_edge(jump=BASTION)
        raw["cloud"][0]["ssh"]["jump"] = BASTION
        config = ssh_config(parse(raw))
        assert config.count("Host jump.") == 1
        jump = options(config, options(config, "edge-1", tmp_path)["proxyjump"], tmp_path)
        assert (jump["hostname"], jump["user"], jump["port"]) == ("2001:db8::7", "gate", "2222")
        assert jump["identityfile"].endswith("/.ssh/the gate")
        assert jump["knownhostscommand"].startswith("/bin/echo jump.1 ssh-ed25519 ")
        assert options(config, "cloud-1", tmp_path)["proxyjump"] == "jump.1"

    def test_two_accounts_of_one_bastion_are_two_blocks(self) -> None:
        raw = with_edge(jump=BASTION)
        raw["cloud"][0]["ssh"]["jump"] = {**BASTION, "user": "other"}
        assert ssh_config(parse(raw)).count("Host jump.") == 2

    def test_the_zone_of_an_address_is_no_token(self, tmp_path: Path) -> None:
        config = ssh_config(parse(with_edge(address="fe80::1%eth0")))
        file = tmp_path / "config"
        file.write_text(config)
        told = subprocess.run(["ssh", "-v", "-F", file, "edge-1", "-o", "ProxyJump=none", "-o", "ConnectTimeout=1"],
                              capture_output=True, text=True, check=False).stderr  # fmt: skip
        assert "fe80::1%eth0" in told
        assert "unknown key" not in told


class TestIpv6:
    """An IPv6 address is written without brackets, and gets them where a port follows."""

    def test_endpoints_and_peers_have_brackets(self) -> None:
        raw = guide()
        raw["bootstrap"]["ssh"]["address"] = "2001:db8::5"
        cluster = parse(raw)
        assert make_plan(cluster).nodes[1].peers[0] == "tcp://[2001:db8::5]:11010"
        assert nodes(cluster, make_plan(cluster))[0]["reached"] == "debian@[2001:db8::5]:22"

    @pytest.mark.parametrize("address", ["[2001:db8::5]", "a b", "-oProxyCommand=id", "host;id", "$(id)", ""])
    def test_what_is_no_address_is_refused(self, address: str) -> None:
        assert only_fault(with_edge(address=address)).key == "cluster.edges[0].ssh.address"

    def test_it_needs_easytiers_ipv6(self) -> None:
        raw = guide()
        raw["bootstrap"]["public_address"] = "2001:db8::5"
        raw["overlay"] = {"flags": {"enable_ipv6": False}}
        assert only_fault(raw).key == "cluster.bootstrap.public_address"


class TestListeners:
    """What other hosts are to reach listens where they can."""

    @pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "fe80::1"])  # noqa: S104  # refused
    def test_a_bootstrap_on_loopback_needs_a_public_address(self, address: str) -> None:
        raw = guide()
        raw["bootstrap"]["ssh"]["address"] = address
        fault = only_fault(raw)
        assert (fault.key, fault.value) == ("cluster.bootstrap.ssh.address", address)
        raw["bootstrap"]["public_address"] = "203.0.113.5"
        parse(raw)

    @pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::", "localhost"])
    def test_a_public_address_is_not_on_loopback(self, address: str) -> None:
        raw = guide()
        raw["cloud"][0]["public_address"] = address
        assert only_fault(raw).key == "cluster.cloud[0].public_address"


class TestTheCommandThatShowsAHostKey:
    """It can be pasted: what the settings hold is quoted, and it runs where the host is seen from."""

    @pytest.mark.parametrize(
        ("ssh", "command"),
        [
            ({"jump": None}, "ssh-keyscan -t ed25519 192.168.1.20"),
            ({"jump": None, "port": 2200}, "ssh-keyscan -t ed25519 -p 2200 192.168.1.20"),
            ({}, "ssh debian@203.0.113.5 ssh-keyscan -t ed25519 192.168.1.20"),
            (
                {"jump": BASTION},
                "ssh -i ~/'.ssh/the gate' -p 2222 gate@2001:db8::7 ssh-keyscan -t ed25519 192.168.1.20",
            ),
        ],
    )
    def test_it_goes_the_way_that_pulumi_goes(self, ssh: dict[str, Any], command: str) -> None:
        assert edge(parse(with_edge(**ssh))).show_host_key == command
