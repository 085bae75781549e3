"""What happens while a host can't be reached: retries, limits, pauses, late servers, crowds, cancellation."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from concurrent.futures import TimeoutError as StillRunningError
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from tests.contract.command_harness import (
    REMOTE,
    CallError,
    Created,
    Provider,
    all_at_once,
    eventually,
    secret,
)
from tests.contract.command_sshd import Sshd, free_port
from tests.contract.conftest import StartProvider, StartSshd


def dial(provider: Provider, port: int, sshd: Sshd, *, timeout: float = 0, **connection: Any) -> Created:
    """Runs a command over the server's connection with another port."""
    inputs = sshd.command("echo ok", over={"port": port, **connection})
    return provider.create(REMOTE, inputs, timeout=timeout)


def test_a_refused_dial_names_address_and_port(provider: Provider, sshd: Sshd) -> None:
    port = free_port()
    with pytest.raises(CallError) as failure:
        dial(provider, port, sshd)
    assert failure.value.message == (f"after 0 failed attempts: dial tcp 127.0.0.1:{port}: connect: connection refused")


def test_after_the_limit_of_failures_one_more_is_final(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match="after 3 failed attempts"):
        dial(provider, free_port(), sshd, dialErrorLimit=3)
    assert provider.messages == [f"Dial {attempt}/3 failed: retrying" for attempt in (1, 2, 3)]
    assert all(line.passing for line in provider.lines)


def test_pauses_between_dials_begin_at_a_tenth_of_a_second_and_grow_by_half(provider: Provider, sshd: Sshd) -> None:
    begun = time.monotonic()
    with pytest.raises(CallError, match="after 6 failed attempts"):
        dial(provider, free_port(), sshd, dialErrorLimit=6)
    pauses = sum(0.1 * 1.5**attempt for attempt in range(6))
    assert pauses <= time.monotonic() - begun < pauses + 3


def test_a_host_that_swallows_packets_fails_within_its_limit_per_dial(provider: Provider, sshd: Sshd) -> None:
    with swallowing_port() as port:
        begun = time.monotonic()
        with pytest.raises(CallError, match=rf"after 1 failed attempts: dial tcp 127.0.0.1:{port}: i/o timeout"):
            dial(provider, port, sshd, perDialTimeout=1, dialErrorLimit=1)
        assert 2 <= time.monotonic() - begun < 6


def test_the_limit_per_dial_does_not_cover_a_server_that_accepts_and_stays_silent(
    start_provider: StartProvider, sshd: Sshd
) -> None:
    provider = start_provider()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        hanging = provider.in_background(lambda: dial(provider, port, sshd, perDialTimeout=1, timeout=1))
        with pytest.raises(StillRunningError):
            hanging.result(timeout=4)


def test_a_host_name_that_does_not_exist_is_named(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match=r"dial tcp: lookup nowhere\.invalid"):
        dial(provider, 22, sshd, host="nowhere.invalid")


def test_a_server_that_comes_late_is_waited_for(provider: Provider, sshd: Sshd, start_sshd: StartSshd) -> None:
    port = free_port()
    waiting = provider.in_background(lambda: dial(provider, port, sshd, dialErrorLimit=-1))
    eventually(lambda: "Dial 4/inf failed: retrying" in provider.messages or None, "four failed dials")
    start_sshd(port=port)
    assert waiting.result(timeout=20).state["stdout"] == "ok"


def test_a_jump_says_which_of_its_dials_failed(provider: Provider, sshd: Sshd, bastion: Sshd) -> None:
    port = free_port()
    with pytest.raises(CallError, match=rf"proxy: after 1 .*dial tcp 127.0.0.1:{port}: connect: connection refused"):
        dial(provider, sshd.port, sshd, proxy=bastion.connection(port=port, dialErrorLimit=1))
    with pytest.raises(CallError, match=r"proxy: after 1 .*ssh: rejected: connect failed \(Connection refused\)"):
        dial(provider, port, sshd, dialErrorLimit=1, proxy=bastion.connection())
    assert provider.messages == ["Dial proxy 1/1 failed: retrying", "Dial from proxy 1/1 failed: retrying"]


def test_a_jump_waits_for_a_late_target(provider: Provider, sshd: Sshd, bastion: Sshd, start_sshd: StartSshd) -> None:
    port = free_port()
    waiting = provider.in_background(lambda: dial(provider, port, sshd, dialErrorLimit=-1, proxy=bastion.connection()))
    eventually(lambda: "Dial from proxy 3/inf failed: retrying" in provider.messages or None, "failed dials")
    start_sshd(port=port)
    assert waiting.result(timeout=20).state["stdout"] == "ok"


def test_thirty_two_commands_at_once_get_through_a_stock_server_with_the_default_limit(
    provider: Provider, sshd: Sshd
) -> None:
    inputs = sshd.command("echo ok", over={"dialErrorLimit": 10})
    results = all_at_once(32, lambda _: provider.create(REMOTE, inputs))
    assert [result.state["stdout"] for result in results if isinstance(result, Created)] == ["ok"] * 32


def test_thirty_two_commands_at_once_get_through_one_bastion_with_the_default_limit(
    provider: Provider, sshd: Sshd, bastion: Sshd, start_sshd: StartSshd
) -> None:
    # The target takes any number, as 32 targets would that get one login each.
    target = start_sshd("MaxStartups 100")
    inputs = target.command("echo ok", over={"proxy": bastion.connection(dialErrorLimit=10)})
    results = all_at_once(32, lambda _: provider.create(REMOTE, inputs))
    assert [result.state["stdout"] for result in results if isinstance(result, Created)] == ["ok"] * 32


def test_a_full_server_refuses_who_does_not_retry(provider: Provider, start_sshd: StartSshd) -> None:
    server = start_sshd("MaxStartups 1")
    with (
        eventually(lambda: squatter(server), "the only place for a login"),
        pytest.raises(CallError, match="after 0 failed attempts: ssh: handshake failed"),
    ):
        provider.create(REMOTE, server.command("true"))


def test_a_limit_on_the_resource_ends_its_dialling(provider: Provider, sshd: Sshd) -> None:
    begun = time.monotonic()
    with pytest.raises(CallError, match="context deadline exceeded") as failure:
        dial(provider, free_port(), sshd, dialErrorLimit=-1, timeout=1)
    assert failure.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert 1 <= time.monotonic() - begun < 4


def test_cancelling_ends_dialling(start_provider: StartProvider, sshd: Sshd) -> None:
    provider = start_provider()
    dialling = provider.in_background(lambda: dial(provider, free_port(), sshd, dialErrorLimit=-1))
    eventually(lambda: "Dial 2/inf failed: retrying" in provider.messages or None, "two failed dials")
    provider.cancel()
    with pytest.raises(CallError, match="context canceled"):
        dialling.result(timeout=10)


def test_a_connection_stays_open_until_the_plugin_ends(start_provider: StartProvider, start_sshd: StartSshd) -> None:
    server = start_sshd()
    provider = start_provider()
    provider.create(REMOTE, server.command("true"))
    provider.create(REMOTE, server.command("true"))
    assert server.established() == 2
    provider.close()
    eventually(lambda: server.established() == 0 or None, "the end of the connections")


def test_a_preview_of_a_host_that_is_nowhere_takes_no_time(provider: Provider) -> None:
    with swallowing_port() as port:
        begun = time.monotonic()
        inputs = {"connection": secret({"host": "127.0.0.1", "port": port}), "create": "x"}
        provider.create(REMOTE, inputs, preview=True)
        assert time.monotonic() - begun < 1


def squatter(server: Sshd) -> socket.socket | None:
    """A connection that takes up a place for a login without logging in, or `None` if no place is free."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    if connection.recv(4) == b"SSH-":
        return connection
    connection.close()
    return None


@contextmanager
def swallowing_port() -> Generator[int]:
    """A port of loopback that answers nothing at all: a listener whose queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.settimeout(0)
                filler.connect_ex(listener.getsockname())
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()
