"""The RPC portal answers its own client, and neither side takes a stranger for its partner."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread

import pytest

from lab.easytier_release.standin import rpc


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def stranger(reply: bytes) -> Generator[int]:
    """A server that answers anything with the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = Thread(target=serve)
        thread.start()
        yield int(server.getsockname()[1])
        thread.join()


def test_a_question_gets_its_answer() -> None:
    port = free_port()
    portal = rpc.serve(f"127.0.0.1:{port}", None, lambda question: {"asked": question})
    assert portal.address == f"127.0.0.1:{port}"
    assert rpc.ask("127.0.0.1", port, "peer") == {"asked": "peer"}


def test_what_the_core_cannot_answer_comes_back_as_its_reason() -> None:
    port = free_port()

    def handler(_question: str) -> object:
        raise LookupError("no running instance")

    rpc.serve(f"127.0.0.1:{port}", None, handler)
    with pytest.raises(rpc.PortalError, match="no running instance"):
        rpc.ask("127.0.0.1", port, "peer")


def test_clients_outside_the_whitelist_are_not_served() -> None:
    port = free_port()
    rpc.serve(f"127.0.0.1:{port}", ["192.0.2.0/24"], lambda _question: "secret")
    with pytest.raises(rpc.PortalError):
        rpc.ask("127.0.0.1", port, "peer")


def test_a_busy_portal_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        portal = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(rpc.PortalError, match=portal):
            rpc.serve(portal, None, lambda _question: None)


@pytest.mark.parametrize("portal", ["localhost:15888", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "999999"])
def test_a_bad_portal_address_is_named(portal: str) -> None:
    with pytest.raises(rpc.PortalError, match=portal):
        rpc.serve(portal, None, lambda _question: None)


def test_nobody_there_is_said() -> None:
    with pytest.raises(rpc.PortalError, match="no easytier-core answers"):
        rpc.ask("127.0.0.1", free_port(), "peer")


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b'{"answer": []}\n', b"[]\n", b"\xff\xfe\n"])
def test_another_program_on_the_portal_is_told_apart(reply: bytes) -> None:
    with stranger(reply) as port, pytest.raises(rpc.PortalError, match="not this easytier-core"):
        rpc.ask("127.0.0.1", port, "peer")
