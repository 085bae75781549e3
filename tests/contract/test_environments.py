"""Environments are stacks of one clone: other hosts, another passphrase, and neither sees the other.

Under Pulumi's own CLI and engine. The program is ours but for what it does on hosts: here that is a line in a file,
on a stock OpenSSH server.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from lab.paths import CLONE, VENV
from tests.contract import command_stack
from tests.contract.command_sshd import Keyring, Sshd

pytestmark = pytest.mark.slow

_PROGRAM = Path(__file__).parent / "programs" / "noted_settings.py"

PASSPHRASES = {"dev": "passphrase-of-dev", "prod": "passphrase-of-prod"}
SECRETS = {"dev": "canary-network-secret-of-dev", "prod": "canary-network-secret-of-prod"}


@dataclass(frozen=True)
class Clone:
    """A checkout of the project with stacks on a local backend."""

    folder: Path
    backend: Path
    bin_dirs: list[Path]
    home: Path

    @classmethod
    def make(cls, folder: Path, backend: Path, bin_dirs: list[Path], home: Path, program: Path | None) -> Clone:
        """A fresh checkout: what is committed, and no stack's settings yet."""
        folder.mkdir()
        backend.mkdir(exist_ok=True)
        listed = ["git", "ls-files", "-z", "--", "Pulumi.yaml", "__main__.py", "components", "config"]
        for name in subprocess.check_output(listed, cwd=CLONE, text=True).split("\0"):
            if name:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CLONE / name, folder / name)
        (folder / ".venv").symlink_to(VENV)
        if program is not None:
            shutil.copy2(program, folder / "__main__.py")
        return cls(folder, backend, bin_dirs, home)

    def pulumi(self, stack: str, *argv: str, stdin: str = "", passphrase: str | None = None) -> tuple[int, str]:
        """Runs the CLI on a stack; exit code and what it printed."""
        environment = command_stack.environment(self.bin_dirs, self.home, self.folder) | {
            "PULUMI_BACKEND_URL": f"file://{self.backend}",
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASES[stack] if passphrase is None else passphrase,
            "PULUMI_STACK": stack,
        }
        done = command_stack.run(self.folder, environment, *argv, stdin=stdin)
        return done.returncode, done.stdout + done.stderr

    def ok(self, stack: str, *argv: str, stdin: str = "") -> str:
        """What a command printed that must have succeeded."""
        code, told = self.pulumi(stack, *argv, stdin=stdin)
        assert code == 0, f"pulumi {' '.join(argv)} ({stack}):\n{told}"
        return told

    def settings_file(self, stack: str) -> Path:
        """The settings of a stack."""
        return self.folder / "config" / f"Pulumi.{stack}.yaml"


@pytest.fixture(scope="module")
def home(command_plugin: Path, bin_dirs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Pulumi home with the plugin under test."""
    folder = tmp_path_factory.mktemp("pulumi-home")
    command_stack.install(command_plugin, bin_dirs, folder)
    return folder


class Environments:
    """Two stacks, `dev` and `prod`, each with a host of its own."""

    def __init__(self, clone: Clone, servers: dict[str, Sshd], key: Path, journals: Path) -> None:
        self.clone, self.servers, self.key, self.journals = clone, servers, key, journals

    def create(self, stack: str) -> None:
        """`pulumi stack init`, the settings, the secret."""
        self.clone.ok(stack, "stack", "init", stack)
        server = self.servers[stack].connection()
        node = {
            "name": f"{stack}-head",
            "overlay_ip": "10.10.0.10",
            "env": {"JOURNAL": str(self.journals / stack)},
            "ssh": {
                "address": server["host"],
                "port": server["port"],
                "user": server["user"],
                "host_key": server["hostKey"],
                "key_file": str(self.key),
            },
        }
        cluster = {
            "extends": "config/shared.yaml",
            "overlay": {"network": f"rlinf-{stack}"},
            "bootstrap": {"overlay_ip": "10.10.0.1", "ssh": {"address": "192.0.2.5"}},
            "cloud": [node],
            "rlinf": {"component_placement": {"rollout": {"node_group": "cloud"}, "env": {"node_group": "cloud"}}},
        }
        file = self.clone.settings_file(stack)
        document = yaml.safe_load(file.read_text())
        document["config"] = {"rlinf-cloud-edge:cluster": cluster}
        file.write_text(yaml.safe_dump(document))
        self.clone.ok(stack, "config", "set", "--secret", "networkSecret", stdin=SECRETS[stack])

    def journal(self, stack: str) -> list[str]:
        """What the stack's host was told, in that order."""
        file = self.journals / stack
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def clone(bin_dirs: list[Path], home: Path, tmp_path: Path) -> Clone:
    """A checkout in which each host is just told something."""
    return Clone.make(tmp_path / "clone", tmp_path / "backend", bin_dirs, home, _PROGRAM)


@pytest.fixture
def environments(clone: Clone, keyring: Keyring, sshd: Sshd, bastion: Sshd, tmp_path: Path) -> Environments:
    """Both stacks are up."""
    both = Environments(clone, {"dev": sshd, "prod": bastion}, keyring.client.path, tmp_path)
    for stack in ("dev", "prod"):
        both.create(stack)
        clone.ok(stack, "up", "--yes", "--skip-preview")
    return both


def test_each_stack_has_its_own_hosts_and_its_own_secret(environments: Environments) -> None:
    for stack in ("dev", "prod"):
        assert environments.clone.ok(stack, "stack", "output", "network").strip() == f"rlinf-{stack}"
        assert environments.journal(stack) == [SECRETS[stack]]
        assert environments.clone.ok(stack, "config", "get", "networkSecret").strip() == SECRETS[stack]


def test_neither_stack_reads_the_others_secret(environments: Environments) -> None:
    clone = environments.clone
    for stack, other in (("dev", "prod"), ("prod", "dev")):
        for argv in (("config", "get", "networkSecret"), ("preview",), ("stack", "export", "--show-secrets")):
            code, told = clone.pulumi(stack, *argv, passphrase=PASSPHRASES[other])
            assert code != 0, argv
            assert "incorrect passphrase" in told
            assert SECRETS[stack] not in told
        for text in (clone.settings_file(other).read_text(), clone.ok(other, "stack", "export")):
            assert f"{stack}-head" not in text
            assert SECRETS["dev"] not in text
            assert SECRETS["prod"] not in text


def test_one_is_destroyed_from_a_clean_checkout_and_the_other_stays(environments: Environments, tmp_path: Path) -> None:
    old = environments.clone
    clean = Clone.make(tmp_path / "clean", old.backend, old.bin_dirs, old.home, _PROGRAM)
    # Committed with the project, as a stack's settings are; the other's are not there at all.
    shutil.copy2(old.settings_file("dev"), clean.settings_file("dev"))
    clean.ok("dev", "destroy", "--yes", "--skip-preview")
    assert environments.journal("dev") == [SECRETS["dev"], "down-dev-head"]
    assert environments.journal("prod") == [SECRETS["prod"]]
    resources = json.loads(clean.ok("dev", "stack", "export"))["deployment"].get("resources", [])
    assert [each["urn"] for each in resources if "command:" in each["type"]] == []
    assert "unchanged" in old.ok("prod", "up", "--yes", "--skip-preview")


@pytest.mark.parametrize("name", ["existing-hosts", "direct", "two-clouds-four-edges", "franka", "dev", "prod"])
def test_an_example_previews_as_it_stands_and_connects_to_nothing(
    name: str, bin_dirs: list[Path], home: Path, keyring: Keyring, tmp_path: Path
) -> None:
    clone = Clone.make(tmp_path / "clone", tmp_path / "backend", bin_dirs, home, None)
    file = clone.settings_file("dev")
    example = clone.settings_file(f"example-{name}").read_text()
    file.write_text(example.replace("~/.ssh/id_ed25519", str(keyring.client.path)))
    clone.ok("dev", "stack", "init", "dev")
    clone.ok("dev", "config", "set", "--secret", "networkSecret", stdin=SECRETS["dev"])
    assert file.read_text().startswith("# yaml-language-server: $schema=cluster.schema.json\n"), "comments stay"
    steps = json.loads(clone.ok("dev", "preview", "--json"))["steps"]
    created = {step["urn"].rpartition("::")[2] for step in steps if step["op"] == "create"}
    assert any(urn.endswith("-gate") for urn in created)
    assert SECRETS["dev"] not in json.dumps(steps)
