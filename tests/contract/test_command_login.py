"""How a command logs in: keys, agent, password, host keys, and through another host."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from lab.services import agent_answers
from tests.contract.command_harness import REMOTE, CallError, Json, Provider, eventually
from tests.contract.command_sshd import PASSPHRASE, Key, Keyring, Sshd
from tests.contract.conftest import StartProvider, StartSshd


def run(provider: Provider, server: Sshd, **connection: Any) -> str:
    """Runs a command over a changed connection and returns its output."""
    return provider.create(REMOTE, server.command("echo ok", over=connection)).state["stdout"]


def test_a_key_logs_in(provider: Provider, sshd: Sshd) -> None:
    assert run(provider, sshd) == "ok"


def test_a_key_with_a_passphrase_logs_in(provider: Provider, sshd: Sshd, keyring: Keyring) -> None:
    for key in (keyring.encrypted, keyring.encrypted_pem):
        assert run(provider, sshd, privateKey=key.private, privateKeyPassword=PASSPHRASE) == "ok"


def test_a_key_that_cannot_be_read_fails_before_anything_is_dialled(
    provider: Provider, sshd: Sshd, keyring: Keyring
) -> None:
    logins = sshd.log
    encrypted = keyring.encrypted.private
    for connection, reason in (
        ({"privateKey": encrypted}, "passphrase protected"),
        ({"privateKey": encrypted, "privateKeyPassword": "wrong"}, "decryption password incorrect"),
        ({"privateKey": keyring.encrypted_pem.private, "privateKeyPassword": "wrong"}, "decryption password"),
        ({"privateKeyPassword": PASSPHRASE}, "not password protected"),
        ({"privateKey": "rubbish"}, "no key found"),
    ):
        with pytest.raises(CallError, match=reason):
            run(provider, sshd, **connection, dialErrorLimit=10)
    assert sshd.log == logins
    assert not provider.lines


def test_a_key_that_the_server_does_not_know_is_refused_and_retried(
    provider: Provider, sshd: Sshd, keyring: Keyring
) -> None:
    with pytest.raises(CallError, match=r"after 1 failed attempts: .*attempted methods \[none publickey\]"):
        run(provider, sshd, privateKey=keyring.stranger.private, dialErrorLimit=1)
    assert provider.messages == ["Dial 1/1 failed: retrying"]


def test_without_key_agent_and_password_the_server_refuses(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match=r"unable to authenticate, attempted methods \[none\]"):
        run(provider, sshd, privateKey=None)


def test_an_agent_given_or_in_the_environment_logs_in(
    start_provider: StartProvider, provider: Provider, sshd: Sshd, keyring: Keyring, tmp_path: Path
) -> None:
    with agent(tmp_path, keyring.client) as socket:
        assert run(provider, sshd, privateKey=None, agentSocketPath=socket) == "ok"
        assert run(start_provider(SSH_AUTH_SOCK=socket), sshd, privateKey=None) == "ok"


def test_an_agent_without_the_right_key_is_refused(
    provider: Provider, sshd: Sshd, keyring: Keyring, tmp_path: Path
) -> None:
    with (
        agent(tmp_path, keyring.stranger) as socket,
        pytest.raises(CallError, match=r"attempted methods \[none publickey\]"),
    ):
        run(provider, sshd, privateKey=None, agentSocketPath=socket)


def test_an_agent_with_too_many_wrong_keys_is_cut_off(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    keys = [Key.make(tmp_path / f"wrong-{index}") for index in range(7)]
    with agent(tmp_path, *keys) as socket, pytest.raises(CallError, match="Too many authentication failures"):
        run(provider, sshd, privateKey=None, agentSocketPath=socket)


def test_an_agent_is_not_asked_where_a_key_is_given(
    provider: Provider, sshd: Sshd, keyring: Keyring, tmp_path: Path
) -> None:
    with agent(tmp_path, keyring.client) as socket, pytest.raises(CallError, match="unable to authenticate"):
        run(provider, sshd, privateKey=keyring.stranger.private, agentSocketPath=socket)


def test_a_missing_agent_fails_even_where_a_key_is_given(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match="dial unix /nowhere/agent: connect: no such file or directory"):
        run(provider, sshd, agentSocketPath="/nowhere/agent")


@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
def test_a_password_logs_in_and_a_wrong_one_does_not(
    provider: Provider, keyring: Keyring, tmp_path: Path, method: str
) -> None:
    with password_server(keyring, tmp_path, method) as port:
        settings: Json = {
            "host": "127.0.0.1",
            "port": port,
            "user": "somebody",
            "dialErrorLimit": 0,
            "perDialTimeout": 15,
            "hostKey": keyring.host.public,
        }
        right = {"connection": {**settings, "password": PASSPHRASE}, "create": "whoami"}
        assert provider.create(REMOTE, right).state["stdout"] == "somebody"
        # This server is quick to close: a command that has ended needs no end of its input.
        for _ in range(20):
            assert provider.create(REMOTE, right).state["stdout"] == "somebody"
        wrong = {"connection": {**settings, "password": "wrong"}, "create": "whoami"}
        with pytest.raises(CallError, match=rf"attempted methods \[none .*{method}"):
            provider.create(REMOTE, wrong)
        assert "wrong" not in provider.everything_logged


def test_the_right_host_key_passes_and_none_accepts_any(provider: Provider, sshd: Sshd) -> None:
    assert run(provider, sshd) == "ok"
    assert run(provider, sshd, hostKey=None) == "ok"


def test_a_wrong_host_key_is_refused_before_any_login(provider: Provider, sshd: Sshd, keyring: Keyring) -> None:
    logins = sshd.logins
    with pytest.raises(CallError, match="ssh: handshake failed: ssh: host key mismatch"):
        run(provider, sshd, hostKey=keyring.stranger.public)
    assert sshd.logins == logins


def test_a_host_key_of_another_type_is_refused(
    provider: Provider, start_sshd: StartSshd, keyring: Keyring, tmp_path: Path
) -> None:
    other = Key.make(tmp_path / "ecdsa", "ecdsa")
    server = start_sshd(host_keys=(other,))
    with pytest.raises(CallError, match="no common algorithm for host key"):
        run(provider, server)
    assert run(provider, server, hostKey=other.public) == "ok"


def test_a_server_with_several_host_keys_shows_the_one_that_is_expected(
    provider: Provider, start_sshd: StartSshd, keyring: Keyring, tmp_path: Path
) -> None:
    keys = (Key.make(tmp_path / "ecdsa", "ecdsa"), keyring.host)
    server = start_sshd(host_keys=keys)
    for key in keys:
        assert run(provider, server, hostKey=key.public) == "ok"


def test_rsa_host_keys_never_fit_because_only_their_sha1_signature_is_offered(
    provider: Provider, start_sshd: StartSshd, tmp_path: Path
) -> None:
    key = Key.make(tmp_path / "rsa", "rsa")
    server = start_sshd(host_keys=(key,))
    with pytest.raises(CallError, match=r"no common algorithm for host key; we offered: \[ssh-rsa\]"):
        run(provider, server, hostKey=key.public)


def test_a_host_key_that_cannot_be_read_fails_at_once(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match="failed to parse host key"):
        run(provider, sshd, hostKey="rubbish", dialErrorLimit=10)
    assert not provider.lines


def test_a_jump_logs_in_through_the_other_host(provider: Provider, sshd: Sshd, bastion: Sshd) -> None:
    before = (bastion.logins, sshd.logins)
    assert run(provider, sshd, proxy=bastion.connection()) == "ok"
    assert (bastion.logins, sshd.logins) == (before[0] + 1, before[1] + 1)


def test_a_jump_checks_both_host_keys(provider: Provider, sshd: Sshd, bastion: Sshd, keyring: Keyring) -> None:
    wrong = keyring.stranger.public
    logins = sshd.logins
    with pytest.raises(CallError, match=r"proxy: .*ssh: host key mismatch"):
        run(provider, sshd, proxy=bastion.connection(hostKey=wrong))
    with pytest.raises(CallError, match=r"proxy: .*ssh: host key mismatch"):
        run(provider, sshd, hostKey=wrong, proxy=bastion.connection())
    assert sshd.logins == logins


def test_retried_behind_a_jump_the_first_reason_is_lost(
    provider: Provider, sshd: Sshd, bastion: Sshd, keyring: Keyring
) -> None:
    with pytest.raises(CallError, match="proxy: after 2 failed attempts: ssh: handshake failed: EOF"):
        run(provider, sshd, hostKey=keyring.stranger.public, dialErrorLimit=2, proxy=bastion.connection())
    assert provider.messages == ["Dial 1/2 failed: retrying", "Dial 2/2 failed: retrying"]


def test_an_ipv6_literal_is_dialled_directly_and_through_a_jump(
    provider: Provider, start_sshd: StartSshd, bastion: Sshd
) -> None:
    server = start_sshd("ListenAddress ::1")
    assert run(provider, server, host="::1") == "ok"
    assert run(provider, server, host="::1", proxy=bastion.connection()) == "ok"
    assert run(provider, server, proxy=server.connection(host="::1")) == "ok"
    server.stop()
    with pytest.raises(CallError, match=rf"dial tcp \[::1\]:{server.port}: connect: connection refused"):
        run(provider, server, host="::1")


def test_the_two_ends_of_a_jump_can_use_different_keys(
    provider: Provider, sshd: Sshd, bastion: Sshd, keyring: Keyring
) -> None:
    encrypted = bastion.connection(
        privateKey=keyring.encrypted.private, privateKeyPassword=PASSPHRASE, dialErrorLimit=1
    )
    assert run(provider, sshd, proxy=encrypted) == "ok"
    with pytest.raises(CallError, match=r"proxy: .*unable to authenticate"):
        run(provider, sshd, proxy=bastion.connection(privateKey=keyring.stranger.private))


@contextmanager
def agent(folder: Path, *keys: Key) -> Generator[str]:
    """An ssh-agent with these keys, as its socket."""
    socket = folder / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: agent_answers(socket), "the agent")
        for key in keys:
            environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
            subprocess.run(["ssh-add", "-q", str(key.path)], env=environment, check=True)
        yield str(socket)
    finally:
        process.terminate()
        process.wait()


class _Passwords(asyncssh.SSHServer):
    def __init__(self, method: str) -> None:
        self._method = method

    def password_auth_supported(self) -> bool:
        return self._method == "password"

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("somebody", PASSPHRASE)

    def kbdint_auth_supported(self) -> bool:
        return self._method == "keyboard-interactive"

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        return "", "", "", [("Password: ", False)]

    def validate_kbdint_response(self, username: str, responses: Any) -> bool:
        return list(responses) == [PASSPHRASE]


@contextmanager
def password_server(keyring: Keyring, folder: Path, method: str) -> Generator[int]:
    """A server that takes passwords, as its port.

    It stands for OpenSSH with a password, which needs PAM and an account of the machine. It answers every command
    with the user's name.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def answer(process: asyncssh.SSHServerProcess[str]) -> None:
        process.stdout.write(f"{process.get_extra_info('username')}\n")
        process.exit(0)

    async def serve() -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: _Passwords(method),
            "127.0.0.1",
            0,
            server_host_keys=[str(keyring.host.path)],
            process_factory=answer,
        )

    acceptor = asyncio.run_coroutine_threadsafe(serve(), loop).result()
    try:
        yield acceptor.get_port()
    finally:
        loop.call_soon_threadsafe(acceptor.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
