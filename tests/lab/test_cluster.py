"""The guide, end to end, on real hosts: up, again, what stands then, destroy, and nothing left.

One cluster with two edges serves all tests of this module, in the order they stand; each says what it needs.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from components.token import ray_token
from lab.paths import CLONE
from lab.stack import Stack
from tests.lab.change_fixtures import planned
from tests.lab.cluster_fixtures import (
    accounts_on,
    assert_as_before,
    files_on,
    lab_with_stack,
    ok,
    ray_python,
    raylet_environment,
    service_pids,
)

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2")
NODES = HOSTS[1:]
OVERLAY = {"bootstrap": "10.10.0.1", "cloud-1": "10.10.0.10", "edge-1": "10.10.0.11", "edge-2": "10.10.0.12"}


def logins(stack: Stack, host: str) -> int:
    """How much sshd has logged since the host booted: it logs every connection."""
    told = stack.lab.exec(
        host,
        "journalctl",
        "--no-pager",
        "--output=cat",
        "--identifier=sshd",
    )
    return len(told.stdout.splitlines())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-cluster", edges=2) as stack:
        yield stack


@pytest.fixture(scope="module")
def before(stack: Stack) -> dict[str, tuple[set[str], str]]:
    """Files and accounts of each host before anything was done to it."""
    return {host: (files_on(stack, host), accounts_on(stack, host)) for host in HOSTS}


@pytest.fixture(scope="module")
def secret(stack: Stack) -> str:
    return stack.pulumi("config", "get", "networkSecret").strip()


@pytest.fixture(scope="module")
def printed(stack: Stack, before: dict[str, tuple[set[str], str]]) -> list[str]:
    """All that Pulumi has printed so far; the first text is that of the first `pulumi up`."""
    return [stack.up("--diff")]


class TestPreviewOfAnEmptyStack:
    """A preview shows what will be, without asking any host."""

    def test_it_lists_every_resource_of_every_host_and_connects_to_nothing(self, stack: Stack) -> None:
        before = [logins(stack, host) for host in HOSTS]
        shown = json.loads(stack.pulumi("preview", "--json"))
        steps = {step["urn"].rpartition("::")[2] for step in shown["steps"] if step["op"] == "create"}
        for host in HOSTS:
            assert {host, f"{host}-check", f"{host}-prepare", f"{host}-overlay"} <= steps
        assert {f"{node}-ray" for node in NODES} | {"cloud-1-gate"} <= steps
        assert [logins(stack, host) for host in HOSTS] == before


@pytest.mark.usefixtures("printed")
class TestAfterTheFirstUp:
    """The guide's cluster stands."""

    def test_the_outputs_are_the_guides_addresses_and_ranks(self, stack: Stack) -> None:
        assert stack.outputs()["overlay_ips"] == OVERLAY
        config = YAML(typ="safe").load(stack.pulumi("stack", "output", "rlinf_config"))
        assert config["cluster"]["num_nodes"] == 3
        assert config["cluster"]["node_groups"] == [
            {"label": "cloud", "node_ranks": "0"},
            {"label": "edge", "node_ranks": "1-2"},
        ]

    @pytest.mark.parametrize("host", HOSTS)
    def test_easytier_runs_at_every_boot_with_its_address(self, stack: Stack, host: str) -> None:
        assert ok(stack.lab.exec(host, "systemctl", "is-active", "rlinf-easytier")) == "active\n"
        assert ok(stack.lab.exec(host, "systemctl", "is-enabled", "rlinf-easytier")) == "enabled\n"
        assert f" {OVERLAY[host]}/24 " in ok(
            stack.lab.exec(host, "ip", "-4", "-brief", "address", "show", "dev", "et0")
        )

    @pytest.mark.parametrize(("host", "rank"), [(node, str(rank)) for rank, node in enumerate(NODES)])
    def test_the_raylet_has_its_rank_and_device(self, stack: Stack, host: str, rank: str) -> None:
        assert ok(stack.lab.exec(host, "systemctl", "is-active", "rlinf-ray")) == "active\n"
        assert ok(stack.lab.exec(host, "systemctl", "is-enabled", "rlinf-ray")) == "enabled\n"
        environment = raylet_environment(stack, host)
        assert (environment["RLINF_NODE_RANK"], environment["RLINF_COMM_NET_DEVICES"]) == (rank, "et0")

    @pytest.mark.parametrize("host", ["cloud-1", "edge-1"])
    def test_plain_ray_init_auto_sees_all_nodes_on_overlay_addresses(self, stack: Stack, host: str) -> None:
        code = (
            "import ray; ray.init('auto', logging_level=40); "
            "print(sorted(n['NodeManagerAddress'] for n in ray.nodes() if n['Alive']))"
        )
        assert ast.literal_eval(ray_python(stack, host, code).splitlines()[-1]) == [OVERLAY[node] for node in NODES]

    def test_the_rendered_config_is_on_the_head(self, stack: Stack) -> None:
        on_head = ok(stack.lab.exec("cloud-1", "cat", "/etc/rlinf-cloud-edge/rlinf/cluster.yaml"))
        assert on_head.strip() == stack.pulumi("stack", "output", "rlinf_config").strip()

    def test_the_ssh_config_reaches_every_host_by_name(self, stack: Stack, tmp_path: Path) -> None:
        file = tmp_path / "ssh_config"
        file.write_text(stack.pulumi("stack", "output", "ssh_config"))
        for host in HOSTS:
            done = stack.lab.run(
                "/usr/bin/ssh",
                "-F",
                str(file),
                "-o",
                "BatchMode=yes",
                "-o",
                "UserKnownHostsFile=/dev/null",
                host,
                "hostname",
            )
            assert ok(done) == f"{host}\n"

    def test_a_second_up_changes_nothing(self, stack: Stack) -> None:
        summary = json.loads(stack.pulumi("preview", "--json"))["changeSummary"]
        assert set(summary) == {"same"}
        assert "unchanged" in stack.up()

    @pytest.mark.long
    def test_repair_runs_every_script_and_restarts_nothing(self, stack: Stack, printed: list[str]) -> None:
        pids = {host: service_pids(stack, host) for host in HOSTS}
        stack.change(lambda cluster: cluster.update(repair="once"))
        printed.append(stack.up("--diff"))
        assert "updated" in printed[-1]
        assert {host: service_pids(stack, host) for host in HOSTS} == pids

    def test_repair_restores_what_was_stopped_by_hand_and_touches_nothing_else(
        self, stack: Stack, printed: list[str]
    ) -> None:
        ok(stack.lab.exec("edge-2", "systemctl", "disable", "--now", "rlinf-easytier", "rlinf-ray"))
        pids = {host: service_pids(stack, host) for host in HOSTS}
        assert pids["edge-2"]["rlinf-ray.service"] == "0"
        stack.change(lambda cluster: cluster.update(repair="twice"))
        printed.append(stack.up("--diff"))
        after = {host: service_pids(stack, host) for host in HOSTS}
        assert "0" not in after["edge-2"].values()
        assert ok(stack.lab.exec("edge-2", "systemctl", "is-enabled", "rlinf-ray")) == "enabled\n"
        assert {host: after[host] for host in HOSTS[:3]} == {host: pids[host] for host in HOSTS[:3]}


@pytest.mark.usefixtures("printed")
class TestSecrets:
    """The network secret, Ray's token and the SSH key are nowhere in plain text but in files of mode 0600."""

    def canaries(self, stack: Stack, secret: str) -> list[str]:
        key = stack.lab.lab.files.client_key.read_text().splitlines()[1:-1]
        return [secret, ray_token(secret), *key]

    def test_not_in_what_pulumi_prints_or_exports(self, stack: Stack, secret: str, printed: list[str]) -> None:
        texts = [
            *printed,
            stack.pulumi("preview", "--diff"),
            stack.pulumi("stack", "export"),
            stack.pulumi("stack", "output"),
        ]
        texts.append(stack.settings_file.read_text())
        for canary in self.canaries(stack, secret):
            assert not any(canary in text for text in texts)

    def test_a_key_from_a_file_is_as_secret_and_restarts_nothing(
        self, stack: Stack, secret: str, printed: list[str]
    ) -> None:
        pids = {host: service_pids(stack, host) for host in HOSTS}
        key_file = str(stack.lab.lab.files.client_key)
        stack.change(lambda cluster: cluster["ssh"].update(key_file=key_file))
        printed += [stack.pulumi("preview", "--diff"), stack.up("--diff")]
        assert {host: service_pids(stack, host) for host in HOSTS} == pids
        exported = stack.pulumi("stack", "export")
        shown = stack.pulumi("stack", "export", "--show-secrets")
        assert all(canary in shown for canary in self.canaries(stack, secret)), "the search can't find what is there"
        for canary in self.canaries(stack, secret):
            assert canary not in exported + "".join(printed)

    @pytest.mark.parametrize("host", HOSTS)
    def test_not_in_processes_units_or_journals(self, stack: Stack, secret: str, host: str) -> None:
        texts = {
            "ps": ok(stack.lab.exec(host, "ps", "axww", "-o", "args")),
            "units": ok(stack.lab.exec(host, "systemctl", "cat", "rlinf-*")),
            "journal": ok(stack.lab.exec(host, "journalctl", "--no-pager", "--output=json")),
        }
        for canary in self.canaries(stack, secret):
            assert [name for name, text in texts.items() if canary in text] == []

    @pytest.mark.parametrize("host", HOSTS)
    def test_only_in_files_of_mode_0600(self, stack: Stack, secret: str, host: str) -> None:
        pattern = "\n".join([secret, ray_token(secret)])
        found = stack.lab.exec(
            host,
            "grep",
            "-rlF",
            "-f",
            "-",
            "/etc",
            "/opt/rlinf-cloud-edge/libexec",
            "/var",
            "/home",
            "/run",
            "/tmp",
            stdin=pattern,
        )
        files = found.stdout.split()
        expected = {"/etc/rlinf-cloud-edge/easytier.env"} | (
            {"/etc/rlinf-cloud-edge/ray.token"} if host in NODES else set[str]()
        )
        assert set(files) == expected
        assert set(ok(stack.lab.exec(host, "stat", "--format=%a", *files)).split()) == {"600"}


@pytest.mark.usefixtures("printed")
class TestPorts:
    """Nothing of Ray answers off the overlay."""

    def test_no_ray_port_answers_from_the_public_segment(self, stack: Stack) -> None:
        listening = ok(stack.lab.exec("cloud-1", "ss", "-Hltn"))
        ports = {line.split()[3].rpartition(":")[2] for line in listening.splitlines()}
        assert {"6379", "20001", "11010"} <= ports
        code = (
            "import concurrent.futures, socket, sys\n"
            "def answers(port):\n"
            "    try: socket.create_connection(('203.0.113.10', port), 1).close()\n"
            "    except OSError: return False\n"
            "    return True\n"
            "ports = list(map(int, sys.argv[1:]))\n"
            "with concurrent.futures.ThreadPoolExecutor(len(ports)) as pool:\n"
            "    print([port for port, there in zip(ports, pool.map(answers, ports)) if there])"
        )
        told = ok(stack.lab.run("python3", "-c", code, *sorted(ports)))
        assert ast.literal_eval(told) == [11010, 22]


@pytest.mark.usefixtures("printed")
class TestAChange:
    """What changes in the settings changes in the processes it concerns; the report of drift follows."""

    def test_a_new_mtu_and_two_ranks_that_change_places(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            cluster["ssh"].update(key_file=str(stack.lab.lab.files.client_key))
            cluster["overlay"]["mtu"] = 1300
            cluster["edges"][0]["rank"], cluster["edges"][1]["rank"] = 2, 1

        before = {host: service_pids(stack, host) for host in HOSTS}
        stack.change(edit)
        rays = ["edge-1-ray", "edge-2-ray", "cloud-1-gate"]
        assert planned(stack) == dict.fromkeys([*(f"{host}-overlay" for host in HOSTS), *rays], "update")
        stack.up()
        after = {host: service_pids(stack, host) for host in HOSTS}
        assert after["cloud-1"]["rlinf-ray.service"] == before["cloud-1"]["rlinf-ray.service"]
        for host in HOSTS:
            assert after[host]["rlinf-easytier.service"] != before[host]["rlinf-easytier.service"]
            assert " mtu 1280 " in ok(stack.lab.exec(host, "ip", "link", "show", "dev", "et0"))
        for host, rank in (("edge-1", "2"), ("edge-2", "1")):
            assert raylet_environment(stack, host)["RLINF_NODE_RANK"] == rank
        assert "unchanged" in stack.up()

    def test_the_doctor_finds_all_as_planned_and_names_what_is_not(self, stack: Stack) -> None:
        command = (sys.executable, "-m", "doctor", "--cwd", str(stack.project), "--stack", "lab")
        done = stack.lab.run(*command, cwd=CLONE)
        assert (done.returncode, done.stdout.count("as planned")) == (0, len(HOSTS)), done.stdout + done.stderr
        ok(stack.lab.exec("edge-2", "systemctl", "stop", "rlinf-ray"))
        done = stack.lab.run(*command, cwd=CLONE)
        assert done.returncode == 1
        assert "\nedge-2: Ray does not run: its service is " in done.stdout


class TestDestroy:
    """Runs last: the hosts are as they were."""

    def test_nothing_of_ours_is_left(
        self, stack: Stack, before: dict[str, tuple[set[str], str]], printed: list[str]
    ) -> None:
        printed.append(stack.pulumi("destroy", "--yes"))
        for host in HOSTS:
            assert_as_before(stack, host, before[host])
            units = ok(
                stack.lab.exec(
                    host, "systemctl", "list-units", "--all", "--no-legend", "--plain", "rlinf*", "system-rlinf*"
                )
            )
            assert units == ""
