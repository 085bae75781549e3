"""Dialling: a TCP connection and an SSH handshake, directly or through a proxy, with the original's retries.

An attempt's time limit covers the TCP connection only: a server that accepts and then stays silent holds the
operation for ever. Connections made for commands are left open until the plugin ends. Through a proxy, a failed
handshake with the target can't succeed in a later attempt, because the attempts share one forwarded stream, and what
is reported is the end of that stream, not the first reason. All three are the original's ways.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncssh
from asyncssh.constants import (
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_CONNECT_FAILED,
    OPEN_RESOURCE_SHORTAGE,
    OPEN_UNKNOWN_CHANNEL_TYPE,
)

from lab.plugin_kit.operation import INFO, FailedError, Operation

from .connection import Connection
from .go_text import endpoint, error_text
from .ssh_login import Client, Login, prepare

T = TypeVar("T")

FIRST_PAUSE = 0.1
"""Seconds between the first attempt and the second."""
PAUSE_GROWTH = 1.5
LONGEST_PAUSE = 5.0

_REJECTED = {
    OPEN_ADMINISTRATIVELY_PROHIBITED: "administratively prohibited",
    OPEN_CONNECT_FAILED: "connect failed",
    OPEN_UNKNOWN_CHANNEL_TYPE: "unknown channel type",
    OPEN_RESOURCE_SHORTAGE: "resource shortage",
}
_END_OF_STREAM = "ssh: handshake failed: EOF"


async def dial(operation: Operation, target: Connection) -> asyncssh.SSHClientConnection:
    """A logged-in connection to `target`."""
    login = prepare(target)
    if target.proxy is None:
        return await _with_retries(operation, "Dial", target.dial_error_limit, lambda: _connect(target, login))
    try:
        proxy_login = prepare(target.proxy)
        return await _dial_through(operation, target.proxy, proxy_login, target, login)
    except FailedError as failure:
        raise failure.within("proxy: ") from failure


async def _dial_through(
    operation: Operation, proxy: Connection, proxy_login: Login, target: Connection, login: Login
) -> asyncssh.SSHClientConnection:
    bastion = await _with_retries(operation, "Dial proxy", proxy.dial_error_limit, lambda: _connect(proxy, proxy_login))
    outcome = await _with_retries(
        operation, "Dial from proxy", target.dial_error_limit, lambda: _forward(bastion, target, login)
    )

    async def handshake() -> asyncssh.SSHClientConnection:
        nonlocal outcome
        if isinstance(outcome, FailedError):
            failure, outcome = outcome, FailedError(_END_OF_STREAM)
            raise failure
        return outcome

    return await _with_retries(operation, "Dial", target.dial_error_limit, handshake)


async def _with_retries(operation: Operation, what: str, limit: int, attempt: Callable[[], Awaitable[T]]) -> T:
    pause, failed = FIRST_PAUSE, 0
    while True:
        try:
            return await attempt()
        except FailedError as failure:
            failed += 1
            if limit > -1 and failed > limit:
                raise failure.within(f"after {failed - 1} failed attempts: ") from failure
        shown = "inf" if limit == -1 else str(limit)
        await operation.say(INFO, f"{what} {failed}/{shown} failed: retrying", passing=True)
        if not await operation.cancellation.pause(pause):
            raise operation.cancellation.failure
        pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE)


async def _connect(target: Connection, login: Login) -> asyncssh.SSHClientConnection:
    stream = await _tcp(target)
    try:
        return await _handshake(target, login, sock=stream)
    except FailedError:
        stream.close()
        raise


async def _forward(
    bastion: asyncssh.SSHClientConnection, target: Connection, login: Login
) -> asyncssh.SSHClientConnection | FailedError:
    """A connection through `bastion`; a failed handshake is a result here, a refused stream a failure."""
    try:
        return await _handshake(target, login, tunnel=bastion)
    except FailedError as failure:
        return failure
    except asyncssh.ChannelOpenError as error:
        raise rejected(error) from error


def rejected(error: asyncssh.ChannelOpenError) -> FailedError:
    """A channel that the server refused to open, in the original's words."""
    reason = _REJECTED.get(error.code, f"unknown reason {error.code}")
    return FailedError(f"ssh: rejected: {reason} ({error.reason})")


async def _handshake(
    target: Connection,
    login: Login,
    *,
    sock: socket.socket | None = None,
    tunnel: asyncssh.SSHClientConnection | None = None,
) -> asyncssh.SSHClientConnection:
    client = Client(login)
    try:
        return await asyncssh.connect(
            target.host,
            target.port,
            sock=sock,
            tunnel=tunnel or (),
            config=None,
            client_factory=lambda: client,
            username=login.user,
            client_keys=None,
            agent_path=None,
            known_hosts=([], [], []),
            server_host_key_algs=login.host_key_algorithms,
            preferred_auth=login.methods or ["none"],
            gss_host=None,
            host_based_auth=False,
            login_timeout=0,
            x509_trusted_certs=None,
        )
    except asyncssh.ChannelOpenError:
        raise
    except (asyncssh.Error, OSError) as error:
        raise FailedError(f"ssh: handshake failed: {_reason(error, client)}") from error


def _reason(error: asyncssh.Error | OSError, client: Client) -> str:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return client.host_key_fault or "ssh: host key mismatch"
    if isinstance(error, asyncssh.PermissionDenied):
        tried = " ".join(client.attempted)
        return f"ssh: unable to authenticate, attempted methods [{tried}], no supported methods remain"
    if isinstance(error, asyncssh.ConnectionLost | ConnectionResetError):
        return client.host_key_fault or "EOF"
    if isinstance(error, asyncssh.DisconnectError):
        return f"ssh: disconnect, reason {error.code}: {error.reason}"
    return error_text(error) if isinstance(error, OSError) else str(error)


async def _tcp(target: Connection) -> socket.socket:
    """A TCP connection to the first address of `target` that takes one, within its time limit."""
    loop = asyncio.get_running_loop()
    limit = target.per_dial_timeout or None
    try:
        addresses = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise FailedError(f"dial tcp: lookup {target.host}: no such host") from error
    first_failure: FailedError | None = None
    try:
        async with asyncio.timeout(limit):
            for family, kind, protocol, _, address in addresses:
                try:
                    return await _tcp_to(family, kind, protocol, address)
                except OSError as error:
                    where = endpoint(str(address[0]), target.port)
                    first_failure = first_failure or FailedError(f"dial tcp {where}: connect: {error_text(error)}")
    except TimeoutError as error:
        where = endpoint(str(addresses[0][4][0]), target.port)
        raise FailedError(f"dial tcp {where}: i/o timeout") from error
    raise first_failure or FailedError(f"dial tcp: lookup {target.host}: no such host")


async def _tcp_to(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    stream = socket.socket(family, kind, protocol)
    try:
        stream.settimeout(0)
        # Go's defaults: a peer that is gone without a word is noticed after about two and a half minutes.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9)
        await asyncio.get_running_loop().sock_connect(stream, address)
    except BaseException:
        stream.close()
        raise
    return stream
