"""Hosts that are reached, and have their Ray, in other ways than the guide's.

One cluster serves all tests of this module, in the order they stand:

- bootstrap: as ever. Beside it, on the same machine, a bastion: port 2222, an account and an encrypted key of its own.
- cloud-1: by an encrypted key file; RLinf's environment by `ray.venv`.
- edge-1: through the bastion, by password; RLinf's environment by an activation command.
- edge-2: through the bootstrap; RLinf's environment at another path; two GPUs by what stands in for nvidia-smi.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab import accounts
from lab.paths import Cache
from lab.rlinf_env import build
from lab.stack import Stack
from lab.toolchain import versions
from tests.lab.cluster_fixtures import (
    accounts_on,
    assert_as_before,
    failed,
    files_on,
    lab_with_stack,
    ok,
    ray_python,
    raylet_environment,
    service_pids,
)

pytestmark = pytest.mark.long  # a cluster of its own

HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-2")
NODES = HOSTS[1:]
ACTIVATE = "source switch_env openvla"

# As RLinf's image has it; beyond that, what an environment may hold.
SWITCH_ENV = r"""
source "$HOME/envs/$1/bin/activate"
export LD_LIBRARY_PATH=/opt/cuda/lib64 SWITCHED_TO="$1" PYTHONPATH=/activated
export LINES_OF_IT=$'first\nEVIL=1\n"$(id)" `id` \\ '"'quoted'"
export NOT_TEXT=$'\xff'
helper() { echo helper; }
export -f helper
echo "switched to $1"
"""

# It stands for NVIDIA's own, which there is none of without a GPU: it prints what that prints of two.
NVIDIA_SMI = """#!/bin/sh
echo 'GPU 0: NVIDIA L40S (UUID: GPU-00000000-0000-0000-0000-000000000000)'
echo 'GPU 1: NVIDIA L40S (UUID: GPU-00000000-0000-0000-0000-000000000001)'
"""


@dataclass(frozen=True)
class Ways:
    """The stack, and what its logins prove themselves with."""

    stack: Stack
    keys: Path
    password: str
    gate_passphrase: str
    trainer_passphrase: str

    @property
    def canaries(self) -> tuple[str, ...]:
        """What must be nowhere."""
        return (self.password, self.gate_passphrase, self.trainer_passphrase)

    def settings(self, cluster: dict[str, Any]) -> None:
        """Makes the lab's settings those of this module."""
        cluster["ray"] = {"version": versions.RAY, "venv": "/opt/rlinf/venv", "env": {"EVERYWHERE": "1"}}
        cluster["ssh"]["connect_timeout"] = 10
        head, (first, second) = cluster["cloud"][0], cluster["edges"]
        head["ssh"] |= {
            "user": "trainer", "key_file": str(self.keys / "trainer"), "key_passphrase_secret": "trainerPassphrase",
        }  # fmt: skip
        first["ssh"] |= {
            "user": "robot",
            "password_secret": "robotPassword",
            "jump": {
                "address": cluster["bootstrap"]["ssh"]["address"],
                "port": 2222,
                "user": "gate",
                "host_key": cluster["bootstrap"]["ssh"]["host_key"],
                "key_file": str(self.keys / "gate"),
                "key_passphrase_secret": "gatePassphrase",
            },
        }
        first["ray"] = {"activate": ACTIVATE}
        first["env"] = {"PYTHONPATH": "/mine", "OF_THE_HOST": 'a "b" $HOME'}
        second["ray"] = {"venv": "/srv/other/env"}
        second["gpus"] = 2

    def change(self, **edge: Any) -> None:
        """Writes the settings of this module, the first edge's changed."""

        def edit(cluster: dict[str, Any]) -> None:
            self.settings(cluster)
            cluster["edges"][0] |= edge

        self.stack.change(edit)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ways, None, None]:
    cache = Cache.from_environment()
    build(cache.rlinf, cache.uv)
    keys = tmp_path_factory.mktemp("keys")
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-ways", edges=2) as stack:
        ways = Ways(stack, keys, *(f"canary {secrets.token_hex(8)}" for _ in range(3)))
        lab = stack.lab.lab
        accounts.with_password(lab, "edge-1", "robot", ways.password)
        accounts.with_key(lab, "bootstrap", "gate", accounts.make_key(keys / "gate", ways.gate_passphrase), sudo=False)
        accounts.listen_also(lab, "bootstrap", 2222)
        accounts.with_key(lab, "cloud-1", "trainer", accounts.make_key(keys / "trainer", ways.trainer_passphrase))
        put(stack, "edge-1", "/usr/local/bin/switch_env", SWITCH_ENV)
        # Its first lines, Debian's, end it in a shell that is not interactive.
        ok(stack.lab.exec("edge-1", "tee", "-a", "/home/robot/.bashrc", stdin="export OF_BASHRC=1\n"))
        ok(stack.lab.exec("edge-1", "mkdir", "/home/robot/envs"))
        ok(stack.lab.exec("edge-1", "ln", "-s", "/opt/rlinf/venv", "/home/robot/envs/openvla"))
        ok(stack.lab.exec("edge-2", "mkdir", "/srv/other"))
        ok(stack.lab.exec("edge-2", "ln", "-s", "/opt/rlinf/venv", "/srv/other/env"))
        put(stack, "edge-2", "/usr/local/bin/nvidia-smi", NVIDIA_SMI, mode="0755")
        for name, value in (
            ("robotPassword", ways.password),
            ("gatePassphrase", ways.gate_passphrase),
            ("trainerPassphrase", ways.trainer_passphrase),
        ):
            stack.pulumi("config", "set", "--secret", name, stdin=value)
        ways.change()
        yield ways


def put(stack: Stack, host: str, path: str, text: str, mode: str = "0644") -> None:
    ok(stack.lab.exec(host, "install", "-m", mode, "/dev/stdin", path, stdin=text))


@pytest.fixture(scope="module")
def before(ways: Ways) -> dict[str, tuple[set[str], str]]:
    """Files and accounts of each host before anything was done to it."""
    return {host: (files_on(ways.stack, host), accounts_on(ways.stack, host)) for host in HOSTS}


@pytest.fixture(scope="module")
def printed(ways: Ways, before: dict[str, tuple[set[str], str]]) -> list[str]:
    """All that Pulumi has printed so far."""
    return [ways.stack.up("--diff")]


def services(stack: Stack) -> dict[str, dict[str, str]]:
    """Main processes of our services on every host."""
    return {host: service_pids(stack, host) for host in HOSTS}


@pytest.mark.usefixtures("printed")
class TestWaysIn:
    """Each host is reached as its settings say, and what the logins prove themselves with is nowhere to be seen."""

    def test_the_bastion_lets_the_edges_login_through_and_is_left_alone(self, ways: Ways) -> None:
        told = ok(ways.stack.lab.exec("bootstrap", "journalctl", "--no-pager", "--output=cat", "--identifier=sshd"))
        assert "Accepted publickey for gate from 203.0.113.100" in told
        there = ok(ways.stack.lab.exec("edge-1", "journalctl", "--no-pager", "--output=cat", "--identifier=sshd"))
        assert "Accepted password for robot from 203.0.113.5" in there
        assert "Accepted publickey" not in there.split("Accepted password", 1)[1]

    def test_no_password_or_passphrase_is_in_what_is_printed_recorded_or_running(
        self, ways: Ways, printed: list[str]
    ) -> None:
        stack = ways.stack
        texts = [
            *printed,
            stack.pulumi("stack", "export"),
            stack.pulumi("stack", "output"),
            stack.settings_file.read_text(),
        ]
        texts += [ok(stack.lab.exec(host, "ps", "axww", "-o", "args")) for host in HOSTS]
        texts += [ok(stack.lab.exec(host, "journalctl", "--no-pager", "--output=cat")) for host in HOSTS]
        shown = stack.pulumi("stack", "export", "--show-secrets")
        for canary in ways.canaries:
            assert canary in shown, "the search can't find what is there"
            assert not any(canary in text for text in texts)

    def test_the_ssh_config_goes_the_same_way(self, ways: Ways, tmp_path: Path) -> None:
        config, answers = tmp_path / "ssh_config", tmp_path / "answers"
        config.write_text(ways.stack.pulumi("stack", "output", "ssh_config"))
        answers.write_text(
            f"#!/bin/sh\ncase $1 in *password*) echo '{ways.password}' ;; *) echo '{ways.gate_passphrase}' ;; esac\n"
        )
        answers.chmod(0o755)
        done = ways.stack.lab.run(
            *("/usr/bin/ssh", "-F", str(config), "-o", "UserKnownHostsFile=/dev/null", "edge-1", "hostname; id -un"),
            SSH_ASKPASS=str(answers),
            SSH_ASKPASS_REQUIRE="force",
        )
        assert ok(done).split() == ["edge-1", "robot"]

    def test_a_wrong_password_names_the_host_and_is_not_repeated(self, ways: Ways) -> None:
        stack = ways.stack
        stack.pulumi("config", "set", "--secret", "robotPassword", stdin="wrong canary")
        told = failed(stack, "up", "--yes", "--skip-preview")
        stack.pulumi("config", "set", "--secret", "robotPassword", stdin=ways.password)
        assert "edge-1 (192.168.1.20:22 through 203.0.113.5:2222) " in told
        assert "the secret of ssh.password_secret is right" in told.replace("\n", " ")
        assert "wrong canary" not in told


@pytest.mark.usefixtures("printed")
class TestEnvironments:
    """Ray and its workers get the environment that is named for their host, and nothing of .bashrc."""

    def test_what_the_activation_leaves_is_the_workers(self, ways: Ways) -> None:
        environment = raylet_environment(ways.stack, "edge-1")
        assert environment["VIRTUAL_ENV"].endswith("/venv")
        assert environment["PATH"].split(":")[0] == f"{environment['VIRTUAL_ENV']}/bin"
        assert environment["LD_LIBRARY_PATH"] == "/opt/cuda/lib64"
        assert environment["SWITCHED_TO"] == "openvla"
        assert environment["LINES_OF_IT"] == "first\nEVIL=1\n\"$(id)\" `id` \\ 'quoted'"
        assert not {"EVIL", "NOT_TEXT", "OF_BASHRC", "SUDO_USER", "SSH_CONNECTION"} & set(environment)

    def test_the_users_own_variables_come_last(self, ways: Ways) -> None:
        environment = raylet_environment(ways.stack, "edge-1")
        assert environment["PYTHONPATH"] == "/mine"
        assert environment["OF_THE_HOST"] == 'a "b" $HOME'
        assert environment["EVERYWHERE"] == "1"
        assert "OF_THE_HOST" not in raylet_environment(ways.stack, "edge-2")

    def test_a_worker_and_the_launcher_have_the_same(self, ways: Ways) -> None:
        code = (
            "import os, json, ray\n"
            "ray.init('auto', logging_level=40)\n"
            "node = next(n['NodeID'] for n in ray.nodes() if n['NodeManagerAddress'] == '10.10.0.11')\n"
            "where = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)\n"
            "told = ray.get(ray.remote(lambda: dict(os.environ)).options(scheduling_strategy=where).remote())\n"
            "print(json.dumps([told, dict(os.environ)]))\n"
        )
        worker, launcher = json.loads(ray_python(ways.stack, "edge-1", code).splitlines()[-1])
        for name in ("LINES_OF_IT", "LD_LIBRARY_PATH", "SWITCHED_TO", "OF_THE_HOST", "RLINF_NODE_RANK"):
            assert worker[name] == launcher[name], name
        assert worker["PYTHONPATH"].endswith("/mine")

    def test_each_host_has_its_own_path(self, ways: Ways) -> None:
        assert raylet_environment(ways.stack, "cloud-1")["PATH"].startswith("/opt/rlinf/venv/bin:")
        assert raylet_environment(ways.stack, "edge-2")["PATH"].startswith("/srv/other/env/bin:")

    def test_what_is_no_text_is_told(self, printed: list[str]) -> None:
        assert "variables that are not text are left out: NOT_TEXT" in printed[0]

    def test_a_second_up_changes_nothing_and_repair_restarts_nothing(self, ways: Ways, printed: list[str]) -> None:
        pids = services(ways.stack)
        printed.append(ways.stack.up("--diff"))
        assert "unchanged" in printed[-1]

        def edit(cluster: dict[str, Any]) -> None:
            ways.settings(cluster)
            cluster["repair"] = "once"

        ways.stack.change(edit)
        printed.append(ways.stack.up("--diff"))
        assert services(ways.stack) == pids

    def test_another_variable_or_rank_restarts_that_raylet_alone(self, ways: Ways) -> None:
        pids = services(ways.stack)

        def edit(cluster: dict[str, Any]) -> None:
            ways.settings(cluster)
            cluster["repair"] = "once"
            cluster["edges"][1]["rank"] = 1

        ways.stack.change(edit)
        ways.stack.up()
        after = services(ways.stack)
        assert [raylet_environment(ways.stack, host)["RLINF_NODE_RANK"] for host in NODES] == ["0", "2", "1"]
        changed = {
            (host, service) for host in HOSTS for service in pids[host] if pids[host][service] != after[host][service]
        }
        assert changed == {("edge-1", "rlinf-ray.service"), ("edge-2", "rlinf-ray.service")}


@pytest.mark.usefixtures("printed")
class TestRefused:
    """What can't work is told by the checks, each fault of each host in one run, and nothing is changed."""

    def test_two_hosts_tell_all_their_faults_in_one_run(self, ways: Ways) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            ways.settings(cluster)
            cluster["overlay"]["easytier"]["if_present"] = "refuse"
            cluster["edges"][0] |= {"ray": {"activate": "source switch_nothing openvla"}, "gpus": 1}
            cluster["edges"][1]["gpus"] = 4

        pids = services(ways.stack)
        put(ways.stack, "edge-2", "/usr/local/bin/easytier-core", "#!/bin/sh\nsleep 600\n", mode="0755")
        ok(ways.stack.lab.exec("edge-2", "systemd-run", "--unit=foreign", "/usr/local/bin/easytier-core"))
        ways.stack.change(edit)
        try:
            told = failed(ways.stack, "up", "--yes", "--skip-preview")
        finally:
            ok(ways.stack.lab.exec("edge-2", "systemctl", "stop", "foreign"))
            ok(ways.stack.lab.exec("edge-2", "rm", "/usr/local/bin/easytier-core"))
        assert "edge-1: this host can't take part yet; nothing was changed on it:" in told
        assert "- the settings say gpus: 1, and no accelerator is found (NVIDIA, AMD, Ascend)" in told
        assert (
            "- 'source switch_nothing openvla', evaluated by a login shell of robot, activates nothing: it ends" in told
        )
        assert "switch_nothing: No such file or directory" in told
        assert "edge-2: this host can't take part yet; nothing was changed on it:" in told
        assert "- the settings say gpus: 4, and nvidia-smi -L lists only 2; write gpus: 2" in told
        assert (
            "- another EasyTier is installed, /usr/local/bin/easytier-core, and easytier.if_present says refuse" in told
        )
        assert "- another EasyTier runs, /usr/local/bin/easytier-core (process " in told
        assert services(ways.stack) == pids

    @pytest.mark.parametrize(
        ("command", "why"),
        [
            ("exit 0", "it ends the shell it runs in"),
            ("echo told why >&2; false", "it ends with 1: told why"),
            ("true", "after 'true', python is not to be found"),
        ],
    )
    def test_an_activation_that_leaves_no_ray(self, ways: Ways, command: str, why: str) -> None:
        ways.change(ray={"activate": command})
        assert why in failed(ways.stack, "up", "--yes", "--skip-preview")


class TestVersions:
    """Ray and Python are the same on every node, or no Ray starts, not even the head's."""

    def test_no_ray_starts_and_the_host_is_named_with_both_versions(self, ways: Ways) -> None:
        ways.stack.pulumi("destroy", "--yes", "--skip-preview")
        version = ok(
            ways.stack.lab.exec("edge-1", "python3", "-c", "import platform; print(platform.python_version())")
        )
        version = version.strip()
        other = f"{version}9"
        # Every Python of the host says so of itself.
        site = f"import platform; platform.python_version = lambda: '{other}'\n"
        put(ways.stack, "edge-1", "/etc/python3.11/sitecustomize.py", site)
        ways.change()
        told = failed(ways.stack, "up", "--yes", "--skip-preview")
        put(ways.stack, "edge-1", "/etc/python3.11/sitecustomize.py", "")
        assert f"edge-1: Python is {other} there, and {version} on the head, cloud-1" in told
        assert "Traceback" not in told
        for host in NODES:
            assert ways.stack.lab.exec(host, "systemctl", "cat", "rlinf-ray").returncode != 0


class TestDestroy:
    """Runs last: the hosts are as they were."""

    def test_nothing_of_ours_is_left(self, ways: Ways, before: dict[str, tuple[set[str], str]]) -> None:
        ways.stack.pulumi("destroy", "--yes", "--skip-preview")
        for host in HOSTS:
            assert_as_before(ways.stack, host, before[host])
