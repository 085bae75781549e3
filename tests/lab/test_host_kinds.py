"""Hosts of every kind: without systemd, with root alone, with a bare PATH; and why some can't take part.

One cluster serves all tests of this module, in the order they stand. Its edges:

- edge-1: booted by systemd; only root may log in.
- edge-2: a container of the guide's, without systemd; its PATH is bare.
- edge-3, edge-4: such containers, but started without NET_ADMIN, and without /dev/net/tun.
- edge-5: booted by systemd; its account may not use sudo at first, and its Python is another later.
- edge-6: a container in which there is no `ip`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

from components.token import ray_token
from lab import faults
from lab.polling import wait_for
from lab.stack import Edit, Stack
from lab.topology import Kind
from tests.lab.cluster_fixtures import (
    accounts_on,
    assert_as_before,
    failed,
    files_on,
    lab_with_stack,
    ok,
    ray_python,
    service_pids,
    told_by_checks,
)

pytestmark = pytest.mark.long  # a cluster of containers

# Docker's default set, as of Docker 27, and NET_ADMIN (linux/capability.h numbers them).
CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 12, 13, 18, 27, 29, 31}

KINDS: dict[str, Kind] = {
    "edge-2": "container",
    "edge-3": "container-no-cap",
    "edge-4": "container-no-tun",
    "edge-6": "container",
}
MEMBERS = ("bootstrap", "cloud-1", "edge-1", "edge-2")
CONTAINER = "edge-2"


def with_edges(*numbers: int, repair: str | None = None) -> Edit:
    """An edit of the lab's settings that leaves only these edges, and logs in to the first as root."""

    def edit(cluster: dict[str, Any]) -> None:
        cluster["edges"] = [cluster["edges"][number - 1] for number in numbers]
        cluster["edges"][0]["ssh"]["user"] = "root"
        if repair is not None:
            cluster["repair"] = repair

    return edit


def shell(stack: Stack, host: str, script: str) -> str:
    """What a script prints that root runs on a host, and that must succeed."""
    return ok(stack.lab.exec(host, "bash", "-euc", script))


def pids_of_members(stack: Stack) -> dict[str, dict[str, str]]:
    """Main processes of our services on every host of the cluster."""
    return {host: service_pids(stack, host) for host in MEMBERS}


def ray_pids(stack: Stack) -> set[str]:
    """Processes on the container that belong to Ray, by their command lines."""
    return set(stack.lab.exec(CONTAINER, "pgrep", "-f", "ray").stdout.split())


def back(stack: Stack, before: dict[str, str]) -> bool | None:
    """Whether these services of the container are started anew, and one raylet answers."""
    after = service_pids(stack, CONTAINER)
    if any(after[name] in ("0", before[name]) for name in before):
        return None
    probe = "timeout 2 bash -c 'exec 3<>/dev/tcp/10.10.0.12/20001' && test $(pgrep -xc raylet) = 1"
    return stack.lab.exec(CONTAINER, "bash", "-c", probe).returncode == 0 or None


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    folder = tmp_path_factory.mktemp("project")
    with lab_with_stack(folder, "-kinds", edges=6, kinds=KINDS) as stack:
        shell(
            stack,
            "edge-1",
            "install -D -m 0600 /home/debian/.ssh/authorized_keys /root/.ssh/authorized_keys;"
            "rm /home/debian/.ssh/authorized_keys;"
            "sed -i 's/^PermitRootLogin no/PermitRootLogin prohibit-password/' /etc/ssh/sshd_config.d/*;"
            "systemctl reload ssh",
        )
        # Neither the account's PATH nor sudo's reaches sbin.
        shell(
            stack,
            CONTAINER,
            "echo 'PATH=/usr/bin:/bin' >/etc/environment; echo 'Defaults !secure_path' >/etc/sudoers.d/50-path",
        )
        yield stack


@pytest.fixture(scope="module")
def before(stack: Stack) -> dict[str, tuple[set[str], str]]:
    """Files and accounts of the hosts of the cluster before anything was done to them."""
    return {host: (files_on(stack, host), accounts_on(stack, host)) for host in MEMBERS}


@pytest.fixture(scope="module")
def printed(stack: Stack, before: dict[str, tuple[set[str], str]]) -> str:
    """What the first `pulumi up` printed, with one edge under systemd and one without."""
    stack.change(with_edges(1, 2))
    return stack.up()


class TestContainers:
    """The lab's containers are what the guide's `docker run` makes, or lack just what they are named after."""

    @pytest.mark.parametrize(("host", "lacks"), [("edge-2", set[int]()), ("edge-3", {12}), ("edge-4", set[int]())])
    def test_root_has_the_capabilities_of_docker_run(self, stack: Stack, host: str, lacks: set[int]) -> None:
        told = ok(stack.lab.run("ssh", host, "sudo -n sed -n 's/^CapEff:\\s*//p' /proc/self/status"))
        assert {bit for bit in range(64) if int(told, 16) >> bit & 1} == CAPABILITIES - lacks

    @pytest.mark.parametrize(("host", "there"), [("edge-2", True), ("edge-3", True), ("edge-4", False)])
    def test_the_tun_device_is_there_unless_left_out(self, stack: Stack, host: str, there: bool) -> None:
        assert (stack.lab.exec(host, "test", "-c", "/dev/net/tun").returncode == 0) == there

    def test_process_one_is_an_init_that_reaps_and_no_systemd(self, stack: Stack) -> None:
        assert stack.lab.exec(CONTAINER, "test", "-d", "/run/systemd").returncode == 1
        ok(stack.lab.run("ssh", CONTAINER, "sh -c 'sh -c \"exec sleep 0\" & exec true'"))
        assert wait_for(lambda: True if "Z" not in shell(stack, CONTAINER, "ps ax -o stat=") else None, 5)


@pytest.mark.usefixtures("printed")
class TestHostWithoutSystemd:
    """It is a host like any other: it joins, stays joined whatever ends, and is told what it can't do."""

    def test_up_warns_that_it_will_not_survive_a_reboot_and_of_no_other_host(self, printed: str) -> None:
        warning = "warning: systemd does not run here, so EasyTier and Ray will not survive a reboot"
        assert f"{CONTAINER}: {warning}" in printed
        assert "edge-1: warning" not in printed

    def test_preview_warns_of_it_again(self, stack: Stack) -> None:
        shown = stack.pulumi("preview")
        assert f"{CONTAINER}: there is no systemd, so its EasyTier and Ray will not survive a reboot" in shown
        assert "edge-1: there is no systemd" not in shown

    def test_its_shell_sees_a_bare_path_as_does_sudo(self, stack: Stack) -> None:
        told = ok(stack.lab.run("ssh", CONTAINER, "printenv PATH; sudo -n printenv PATH"))
        assert told.split() == ["/usr/bin:/bin", "/usr/bin:/bin"]

    def test_its_services_belong_to_no_login_and_hold_no_stream(self, stack: Stack) -> None:
        # `up` has returned and its logins are over; what runs has nothing left of them.
        for pid in service_pids(stack, CONTAINER).values():
            streams = shell(stack, CONTAINER, f"readlink /proc/{pid}/fd/0 /proc/{pid}/fd/1 /proc/{pid}/fd/2").split()
            assert streams[0] == "/dev/null"
            assert streams[1] == streams[2]
        assert "sshd: debian" not in shell(stack, CONTAINER, "ps axww -o args")

    def test_its_ray_runs_as_the_login_user_and_its_overlay_as_root(self, stack: Stack) -> None:
        easytier, ray = service_pids(stack, CONTAINER).values()
        assert shell(stack, CONTAINER, f"ps -o user= -p {easytier},{ray}").split() == ["root", "debian"]

    @pytest.mark.parametrize(("host", "rank"), [("edge-1", 1), (CONTAINER, 2)])
    def test_workers_see_rank_and_device_and_nothing_of_the_login(self, stack: Stack, host: str, rank: int) -> None:
        code = (
            "import os, json, ray\n"
            "ray.init('auto', logging_level=40)\n"
            "node = next(n['NodeID'] for n in ray.nodes() if n['NodeManagerAddress'] == '10.10.0.1%d')\n"
            "where = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)\n"
            "told = ray.remote(lambda: dict(os.environ)).options(scheduling_strategy=where).remote()\n"
            "print(json.dumps(ray.get(told)))\n"
        )
        environment = json.loads(ray_python(stack, "cloud-1", code % rank).splitlines()[-1])
        assert environment["RLINF_NODE_RANK"] == str(rank)
        assert environment["RLINF_COMM_NET_DEVICES"] == "et0"
        assert environment["PATH"].startswith("/opt/rlinf-cloud-edge/ray-")
        assert environment["HOME"] == ("/root" if host == "edge-1" else "/home/debian")
        assert not [name for name in environment if name.startswith(("SSH_", "SUDO_"))]

    def test_a_second_up_changes_nothing(self, stack: Stack) -> None:
        pids = pids_of_members(stack)
        assert "unchanged" in stack.up()
        assert pids_of_members(stack) == pids

    def test_repair_restarts_nothing(self, stack: Stack) -> None:
        pids = pids_of_members(stack)
        stack.change(with_edges(1, 2, repair="once"))
        assert "updated" in stack.up()
        assert pids_of_members(stack) == pids

    def test_no_secret_is_in_its_logs_processes_or_units(self, stack: Stack) -> None:
        secret = stack.pulumi("config", "get", "networkSecret").strip()
        shown = shell(
            stack,
            CONTAINER,
            "ps axww -o args; cat /var/lib/rlinf-cloud-edge/log/* /etc/rlinf-cloud-edge/services/*",
        )
        assert "Ray runtime started" in shown
        assert not [canary for canary in (secret, ray_token(secret)) if canary in shown]

    def test_a_killed_overlay_and_raylet_are_back_by_themselves(self, stack: Stack) -> None:
        before = service_pids(stack, CONTAINER)
        easytier = before["rlinf-easytier.service"]
        shell(stack, CONTAINER, f"kill -KILL {easytier} $(pgrep -x raylet)")
        assert wait_for(lambda: back(stack, before), 60)
        assert "process " + easytier + " ended with SIGKILL" in shell(
            stack, CONTAINER, "cat /var/lib/rlinf-cloud-edge/log/rlinf-easytier.service.log"
        )

    def test_a_raylet_that_sigterm_ended_is_back_by_itself(self, stack: Stack) -> None:
        ray = {name: pid for name, pid in service_pids(stack, CONTAINER).items() if name == "rlinf-ray.service"}
        shell(stack, CONTAINER, "pkill -TERM -x raylet")
        assert wait_for(lambda: back(stack, ray), 60)

    def test_a_stop_of_ray_is_quick_and_leaves_no_process_of_it(self, stack: Stack) -> None:
        supervise = "python3 -B /opt/rlinf-cloud-edge/libexec/supervise.py"
        started = time.monotonic()
        shell(stack, CONTAINER, f"{supervise} stop rlinf-ray.service")
        assert time.monotonic() - started < 15, "it took the service's limit"
        assert ray_pids(stack) == set()
        shell(stack, CONTAINER, f"{supervise} start rlinf-ray.service")
        assert wait_for(lambda: back(stack, {"rlinf-ray.service": "0"}), 60)

    def test_what_a_killed_supervisor_left_running_is_ended_before_a_new_one_starts(self, stack: Stack) -> None:
        old = ray_pids(stack)
        shell(stack, CONTAINER, "kill -KILL $(pgrep -f 'supervis[e].py start rlinf-ray.service')")
        assert shell(stack, CONTAINER, "pgrep -xc raylet") == "1\n"
        stack.change(with_edges(1, 2, repair="twice"))
        assert "updated" in stack.up()
        assert shell(stack, CONTAINER, "pgrep -xc raylet") == "1\n"
        assert not old & ray_pids(stack)

    def test_a_restart_of_the_container_ends_all_and_repair_brings_all_back(self, stack: Stack) -> None:
        others = {host: pids for host, pids in pids_of_members(stack).items() if host != CONTAINER}
        faults.reboot(stack.lab.lab, stack.lab.lab.host(CONTAINER))
        assert "rlinf" not in shell(stack, CONTAINER, "ps axww -o args")
        stack.change(with_edges(1, 2, repair="thrice"))
        assert "updated" in stack.up()
        assert "0" not in service_pids(stack, CONTAINER).values()
        assert {host: pids for host, pids in pids_of_members(stack).items() if host != CONTAINER} == others


@pytest.mark.usefixtures("printed")
class TestRefused:
    """A host that can't take part is refused within seconds, with a message of its own, and nothing is done to it."""

    def test_each_with_its_own_message_and_the_cluster_is_not_touched(self, stack: Stack) -> None:
        pids = pids_of_members(stack)
        rule = shell(stack, "edge-5", "grep -rl NOPASSWD /etc/sudoers.d").strip()
        shell(stack, "edge-5", f"mv {rule} /root/sudo-rule")
        shell(stack, "edge-6", "rm -f /usr/sbin/ip /usr/bin/ip")
        stack.change(with_edges(1, 2, 3, 4, 5, 6, repair="thrice"))
        started = time.monotonic()
        told = failed(stack, "up", "--yes", "--skip-preview", "--continue-on-error")
        seconds = time.monotonic() - started
        shell(stack, "edge-5", f"mv /root/sudo-rule {rule}")
        assert seconds < 20

        assert (
            "network devices can't be made here (no CAP_NET_ADMIN); start the container with "
            "--cap-add NET_ADMIN --cap-add NET_RAW" in told_by_checks(told, "edge-3")
        )
        assert "/dev/net/tun is missing" not in told_by_checks(told, "edge-3")
        assert (
            "/dev/net/tun is missing; run 'modprobe tun', or start the container with "
            "--device /dev/net/tun:/dev/net/tun" in told_by_checks(told, "edge-4")
        )
        assert "CAP_NET_ADMIN" not in told_by_checks(told, "edge-4")
        assert "edge-5: debian may not use sudo without a password. Allow it with" in told
        assert "the command ip is missing; install iproute2" in told_by_checks(told, "edge-6")

        for host in ("edge-3", "edge-4", "edge-5", "edge-6"):
            assert stack.lab.exec(host, "ls", "/opt").stdout.split() == ["rlinf"]
            assert "tmp." not in stack.lab.exec(host, "ls", "/tmp").stdout
        assert pids_of_members(stack) == pids

    def test_another_patch_level_of_python_before_ray_starts_there(self, stack: Stack) -> None:
        pids = pids_of_members(stack)
        version = shell(stack, "edge-5", "python3 -c 'import platform; print(platform.python_version())'").strip()
        other = f"{version}9"
        # Every Python of the host, the one in Ray's environment included, says so of itself.
        shell(
            stack,
            "edge-5",
            f"echo 'import platform; platform.python_version = lambda: \"{other}\"' >/etc/python3.11/sitecustomize.py",
        )
        stack.change(with_edges(1, 2, 5, repair="thrice"))
        told = failed(stack, "up", "--yes", "--skip-preview")
        assert f"edge-5: Python is {other} there, and {version} on the head, cloud-1" in told
        assert stack.lab.exec("edge-5", "pgrep", "-f", "ray start").returncode == 1
        assert stack.lab.exec("edge-5", "systemctl", "cat", "rlinf-ray").returncode != 0
        assert pids_of_members(stack) == pids


class TestDestroy:
    """Runs last: the hosts are as they were."""

    def test_nothing_of_ours_is_left(self, stack: Stack, before: dict[str, tuple[set[str], str]], printed: str) -> None:
        stack.pulumi("destroy", "--yes", "--skip-preview")
        for host in MEMBERS:
            assert_as_before(stack, host, before[host])
