"""The plugin under Pulumi's own engine and SDK, against a stock OpenSSH server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract import command_stack
from tests.contract.command_sshd import Keyring, Sshd
from tests.contract.command_stack import Stack

pytestmark = pytest.mark.slow

Remote = Callable[..., tuple[str, dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def pulumi_home(command_plugin: Path, bin_dirs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Pulumi home with the plugin under test."""
    home = tmp_path_factory.mktemp("pulumi-home")
    command_stack.install(command_plugin, bin_dirs, home)
    return home


@pytest.fixture
def stack(bin_dirs: list[Path], pulumi_home: Path, tmp_path: Path) -> Stack:
    """An empty stack."""
    folder = tmp_path / "program"
    folder.mkdir()
    return Stack.create(folder, bin_dirs, pulumi_home)


@pytest.fixture
def remote(sshd: Sshd) -> Remote:
    """A remote command on the stock server: `remote(create="…", options={…})`."""
    settings = sshd.connection()
    connection = {
        "host": settings["host"],
        "port": settings["port"],
        "user": settings["user"],
        "host_key": settings["hostKey"],
        "private_key": {"secret": settings["privateKey"]},
        "dial_error_limit": 0,
    }

    def make(
        options: dict[str, Any] | None = None, over: dict[str, Any] | None = None, **arguments: Any
    ) -> tuple[str, dict[str, Any], dict[str, Any]]:
        return "remote", {"connection": {**connection, **(over or {})}, **arguments}, options or {}

    return make


def test_up_change_up_and_destroy_pass_on_a_stock_server(
    stack: Stack, remote: Remote, sshd: Sshd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"

    def noting(word: str) -> dict[str, str]:
        return {"create": f"echo create-{word} | tee -a {journal}", "delete": f"echo delete >> {journal}"}

    logins = sshd.logins
    stack.write({"one": remote(**noting("first"))})
    assert stack.preview() == {"create": 2}
    assert sshd.logins == logins, "a preview connects to nothing"
    stack.up()
    assert stack.outputs() == {"one": "create-first"}
    assert stack.preview() == {"same": 2}
    stack.write({"one": remote(**noting("second"))})
    assert stack.preview() == {"same": 1, "update": 1}
    said = stack.up()
    assert "Unable to set 'PULUMI_COMMAND_STDOUT'" in said
    assert stack.outputs() == {"one": "create-second"}
    stack.destroy()
    assert journal.read_text().split() == ["create-first", "create-second", "delete"]


@pytest.mark.long
def test_triggers_replace_create_before_delete_unless_told_otherwise(
    stack: Stack, remote: Remote, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"

    def resources(trigger: int) -> dict[str, Any]:
        def noting(name: str, **options: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
            return remote(
                options,
                create=f"echo {name}+{trigger} >> {journal}.{name}",
                delete=f"echo {name}-{trigger} >> {journal}.{name}",
                triggers=["always", trigger],
                add_previous_output_in_env=False,
            )

        return {"a": noting("a"), "b": noting("b", delete_before_replace=True)}

    for trigger in (1, 2):
        stack.write(resources(trigger))
        stack.up()
    assert Path(f"{journal}.a").read_text().split() == ["a+1", "a+2", "a-1"]
    assert Path(f"{journal}.b").read_text().split() == ["b+1", "b-1", "b+2"]


def test_a_failure_says_why_names_the_resource_and_keeps_what_others_did(stack: Stack, remote: Remote) -> None:
    stack.write({"good": remote(create="echo fine"), "bad": remote(create="echo the reason >&2; exit 3")})
    said = stack.up(fails=True)
    assert "Process exited with status 3" in said
    assert "the reason" in said
    assert "bad" in said
    assert '"good"' in said or "::good" in stack.exported()
    stack.write({"good": remote(create="echo fine"), "bad": remote(create="echo better")})
    assert stack.preview() == {"create": 1, "same": 2}
    stack.up()
    assert stack.outputs() == {"good": "fine", "bad": "better"}


def test_secrets_are_in_no_output_and_only_encrypted_in_the_state(
    stack: Stack, remote: Remote, keyring: Keyring
) -> None:
    key = keyring.client.private.splitlines()[1]
    canary, other = "canary-in-standard-input", "changed-canary-in-input"
    said: list[str] = []
    for word, command, fails in ((canary, "wc -c", False), (other, "wc -c", False), (canary, "false", True)):
        stack.write({"one": remote(create=command, stdin={"secret": word})})
        said += [stack.pulumi("preview", "--diff"), stack.up(fails=fails), stack.exported()]
    said.append(stack.destroy())
    for text in said:
        assert canary not in text
        assert other not in text
        assert key not in text


def test_a_folder_of_commands_through_one_bastion_runs_in_parallel(
    stack: Stack, remote: Remote, bastion: Sshd, keyring: Keyring
) -> None:
    proxy = {
        "host": "127.0.0.1",
        "port": bastion.port,
        "user": bastion.connection()["user"],
        "host_key": keyring.host.public,
        "private_key": {"secret": keyring.client.private},
    }
    stack.write({f"edge-{n}": remote(over={"proxy": proxy}, create=f"echo {n}") for n in range(6)})
    stack.up()
    assert stack.outputs() == {f"edge-{n}": str(n) for n in range(6)}


@pytest.mark.long
def test_a_text_is_copied_and_copied_again_when_it_changed(stack: Stack, remote: Remote, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "file"
    connection = remote()[1]["connection"]
    for text in ("one", "two"):
        stack.write(
            {"file": ("copy", {"connection": connection, "source": {"text": text}, "remote_path": str(target)}, {})}
        )
        stack.up()
        assert target.read_text() == text
    assert stack.preview() == {"same": 2}


@pytest.mark.skipif("COMMAND_PLUGIN" in os.environ, reason="the original has nothing to say of itself")
def test_the_substitute_says_what_it_is_when_it_runs_something_and_only_then(stack: Stack, remote: Remote) -> None:
    stack.write({"one": remote(create="echo 1"), "two": remote(create="echo 2")})
    assert "substitute" not in stack.pulumi("preview")
    assert stack.up().count("substitute for Pulumi's command plugin") == 1
    assert "substitute" not in stack.up()
