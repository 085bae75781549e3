"""What connections are made of: keys, passphrases, passwords and bastions, and what is said where they are wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from config.load import Refused
from tests.example_settings import HOST_KEY, guide
from tests.program.harness import Recorder, plain, run_program

PASSWORD = "canary-password"
PASSPHRASE = "canary-passphrase"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys `plain`, `encrypted` and `encrypted-pem`."""
    folder = tmp_path_factory.mktemp("keys")
    for name, passphrase, *form in (
        ("plain", ""),
        ("encrypted", PASSPHRASE),
        ("encrypted-pem", PASSPHRASE, "-t", "rsa", "-m", "PEM"),
    ):
        command = ["ssh-keygen", "-q", "-N", passphrase, "-f", str(folder / name), *form]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return folder


def with_ssh(default: dict[str, Any] | None = None, edge: dict[str, Any] | None = None) -> dict[str, Any]:
    """The guide's settings with more in `cluster.ssh`, and in the edge's."""
    raw = guide()
    raw["ssh"].update(default or {})
    raw["edges"][0]["ssh"].update(edge or {})
    return raw


def connection(recorder: Recorder, host: str) -> dict[str, Any]:
    """The connection of a host's commands, which are all the same."""
    first, *others = (
        plain(inputs["connection"]) for name, inputs in recorder.commands.items() if name.startswith(f"{host}-")
    )
    assert all(other == first for other in others)
    return {name: plain(value) for name, value in first.items()}


def refused(raw: dict[str, Any], config: Mapping[str, str] = MappingProxyType({}), plain: Collection[str] = ()) -> str:
    """What is said of settings that are wrong."""
    with pytest.raises(Refused) as caught:
        run_program(raw, plain=plain, config=config)
    for canary in (PASSWORD, PASSPHRASE):
        assert canary not in caught.value.message
    return caught.value.message


class TestPasswords:
    """A password is a secret of the stack, and only the settings' name for it is in the settings."""

    def test_one_of_all_hosts_is_theirs_and_their_jump_hosts(self) -> None:
        recorder = run_program(with_ssh({"password_secret": "robots"}), config={"robots": PASSWORD})
        edge = connection(recorder, "edge-1")
        assert edge["password"] == edge["proxy"]["password"] == PASSWORD
        assert "privateKey" not in edge

    def test_one_of_a_host_is_its_own_and_takes_the_place_of_a_common_key(self, keys: Path) -> None:
        raw = with_ssh({"key_file": str(keys / "plain")}, {"password_secret": "robots"})
        recorder = run_program(raw, config={"robots": PASSWORD})
        edge = connection(recorder, "edge-1")
        assert edge["password"] == PASSWORD
        assert "privateKey" not in edge
        assert edge["proxy"]["privateKey"] == connection(recorder, "bootstrap")["privateKey"]

    def test_it_is_in_nothing_but_connections_which_are_secret(self) -> None:
        for inputs in run_program(
            with_ssh({"password_secret": "robots"}), config={"robots": PASSWORD}
        ).commands.values():
            assert set(inputs["connection"]) >= {"value"}
            assert PASSWORD not in str({key: value for key, value in inputs.items() if key != "connection"})

    @pytest.mark.parametrize(
        ("config", "plain", "rule"),
        [
            ({}, (), "and there is none of that name"),
            ({"robots": PASSWORD}, ("robots",), "stands in the stack's configuration in plain text"),
            ({"robots": f"{PASSWORD}\n"}, (), "must be one line of text"),
        ],
    )
    def test_one_that_is_missing_plain_or_no_line_is_refused(
        self, config: dict[str, str], plain: tuple[str, ...], rule: str
    ) -> None:
        told = refused(with_ssh(edge={"password_secret": "robots"}), config=config, plain=plain)
        assert "cluster.edges[0].ssh.password_secret\n" in told
        assert rule in told

    def test_one_in_place_of_its_name_is_not_repeated(self) -> None:
        assert "and there is none of that name" in refused(with_ssh(edge={"password_secret": PASSWORD}))

    def test_one_in_the_settings_is_refused_and_not_repeated(self) -> None:
        told = refused(with_ssh(edge={"password": PASSWORD}))
        assert "pulumi config set --secret NAME, and write password_secret: NAME" in told


class TestKeys:
    """Whether a key can be used is seen before anything is dialled."""

    def test_a_key_file_is_read_here(self, keys: Path) -> None:
        edge = connection(run_program(with_ssh({"key_file": str(keys / "plain")})), "edge-1")
        assert edge["privateKey"] == (keys / "plain").read_text()
        assert "privateKeyPassword" not in edge

    @pytest.mark.parametrize("name", ["encrypted", "encrypted-pem"])
    def test_an_encrypted_one_comes_with_its_passphrase(self, keys: Path, name: str) -> None:
        raw = with_ssh(edge={"key_file": str(keys / name), "key_passphrase_secret": "phrase"})
        recorder = run_program(raw, config={"phrase": PASSPHRASE})
        assert connection(recorder, "edge-1")["privateKeyPassword"] == PASSPHRASE
        assert "privateKeyPassword" not in connection(recorder, "edge-1")["proxy"]

    def test_one_in_the_configuration_serves_all_without_credentials_of_their_own(self, keys: Path) -> None:
        raw = with_ssh(edge={"key_file": str(keys / "plain")})
        raw["ssh"]["key_passphrase_secret"] = "phrase"
        recorder = run_program(raw, config={"sshPrivateKey": (keys / "encrypted").read_text(), "phrase": PASSPHRASE})
        bootstrap, edge = connection(recorder, "bootstrap"), connection(recorder, "edge-1")
        assert bootstrap["privateKey"] == edge["proxy"]["privateKey"] == (keys / "encrypted").read_text()
        assert bootstrap["privateKeyPassword"] == PASSPHRASE
        assert edge["privateKey"] == (keys / "plain").read_text()

    @pytest.mark.parametrize(
        ("file", "passphrase", "rule"),
        [
            ("absent", None, "the private key must be readable here: No such file"),
            ("plain.pub", None, "must be a private key in OpenSSH's format or PEM"),
            ("encrypted", None, "the private key is encrypted, and nothing gives its passphrase"),
            ("encrypted-pem", None, "the private key is encrypted, and nothing gives its passphrase"),
            ("plain", PASSPHRASE, "the private key has no passphrase, and one is given"),
            ("encrypted", "another", "does not open the key"),
            ("encrypted-pem", "another", "does not open the key"),
        ],
    )
    def test_one_that_will_not_do_is_refused(self, keys: Path, file: str, passphrase: str | None, rule: str) -> None:
        ssh = {"key_file": str(keys / file), **({"key_passphrase_secret": "phrase"} if passphrase else {})}
        told = refused(with_ssh(edge=ssh), {"phrase": passphrase} if passphrase else {})
        assert f"cluster.edges[0].ssh.key_file: {keys / file}\n" in told
        assert rule in told

    def test_a_passphrase_without_a_key_is_refused(self) -> None:
        told = refused(with_ssh(edge={"key_passphrase_secret": "phrase"}), config={"phrase": PASSPHRASE})
        assert "a passphrase is a key's, and there is no key_file beside it" in told

    def test_a_key_in_plain_configuration_is_refused(self, keys: Path) -> None:
        told = refused(guide(), plain=["sshPrivateKey"], config={"sshPrivateKey": (keys / "plain").read_text()})
        assert "sshPrivateKey\n" in told
        assert "in plain text" in told

    def test_all_faults_of_all_hosts_are_told_together(self, keys: Path) -> None:
        raw = with_ssh({"key_file": "/nonexistent/id"}, {"password_secret": "robots"})
        raw["cloud"][0]["ssh"]["key_file"] = str(keys / "encrypted")
        told = refused(raw)
        assert "the settings have 3 faults" in told

    def test_a_lost_host_needs_none(self) -> None:
        raw = with_ssh(edge={"password_secret": "robots"})
        raw["edges"].append({"name": "edge-2", "overlay_ip": "10.10.0.12", "ssh": {"address": "192.168.1.22"}})
        raw["edges"][0]["lost"] = True
        run_program(raw)

    def test_the_network_secret_in_plain_text_is_refused(self) -> None:
        told = refused(guide(), plain=["networkSecret"])
        assert "it stands in the stack's configuration in plain text" in told


class TestBastions:
    """A host is reached through one that is not of the cluster, by that one's own account, key and port."""

    def bastion(self, **more: Any) -> dict[str, Any]:
        return {"address": "198.51.100.7", "user": "gate", "port": 2222, "host_key": HOST_KEY, **more}

    def test_its_own_account_key_and_port_are_used(self, keys: Path) -> None:
        jump = self.bastion(key_file=str(keys / "encrypted"), key_passphrase_secret="phrase")
        edge = connection(run_program(with_ssh(edge={"jump": jump}), config={"phrase": PASSPHRASE}), "edge-1")
        proxy = edge["proxy"]
        assert (proxy["host"], proxy["user"], proxy["port"]) == ("198.51.100.7", "gate", 2222)
        assert proxy["privateKeyPassword"] == PASSPHRASE
        assert "privateKey" not in edge

    def test_nothing_is_done_on_it(self) -> None:
        names = run_program(with_ssh(edge={"jump": self.bastion()})).commands
        assert {name.rpartition("-")[0] for name in names} == {"bootstrap", "cloud-1", "edge-1"}

    def test_another_account_on_it_makes_no_other_machine(self) -> None:
        before = run_program(with_ssh(edge={"jump": self.bastion()})).commands
        after = run_program(with_ssh(edge={"jump": self.bastion(user="other")})).commands
        assert all(before[name]["triggers"] == after[name]["triggers"] for name in before)

    def test_a_password_of_it_that_is_missing_is_named(self) -> None:
        told = refused(with_ssh(edge={"jump": self.bastion(password_secret="robots")}))
        assert "cluster.edges[0].ssh.jump.password_secret\n" in told


class TestHostKeys:
    """A host without a pinned key is warned of, with the command that prints it."""

    def test_a_host_and_its_bastion_without_one(self, caplog: pytest.LogCaptureFixture) -> None:
        raw = with_ssh(edge={"jump": {"address": "2001:db8::7", "user": "gate", "port": 2222}})
        del raw["edges"][0]["ssh"]["host_key"]
        run_program(raw)
        told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(told) == 2
        assert told[0].startswith("edge-1: no ssh.host_key, so another machine could pose as 192.168.1.20:22.")
        assert told[0].endswith("\n    ssh -p 2222 gate@2001:db8::7 ssh-keyscan -t ed25519 192.168.1.20")
        assert told[1].startswith("edge-1: no ssh.jump.host_key, so another machine could pose as [2001:db8::7]:2222.")
        assert told[1].endswith("\n    ssh-keyscan -t ed25519 -p 2222 2001:db8::7")
