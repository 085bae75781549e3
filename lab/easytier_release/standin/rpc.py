"""The RPC portal between this `easytier-core` and `easytier-cli`: one question a connection.

Each is one line of JSON over TCP, marked with the protocol's name, so that neither side takes another program
for its partner. Upstream's portal speaks protobuf over its own framing: the two don't understand each other,
and say so. There is no authentication, as upstream has none; the portal serves loopback unless told
otherwise.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import socketserver
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import cast

PROTOCOL = "easytier-pyo3-rpc/1"
DEFAULT_PORTS = range(15888, 15900)
"""Upstream's default: the first of these that is free."""

LOOPBACK = ("127.0.0.0/8", "::1/128")
QUESTION_LIMIT = 65536
"""Bytes of a question at most."""

SERVER_PATIENCE = 5.0
CLIENT_PATIENCE = 5.0
"""Seconds to wait for the other side, for each read or write."""

Handler = Callable[[str], object]
"""Answers a question by its name; a LookupError's text goes back to the one who asked."""


class PortalError(Exception):
    """The portal can't be opened, or can't be asked; the text says why."""


class Portal:
    """An open portal, answering in threads of its own as long as the process lives."""

    def __init__(self, server: _Server) -> None:
        self._address = server.server_address
        Thread(target=server.serve_forever, name="rpc-portal", daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens, such as `127.0.0.1:15888`."""
        host, port = self._address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"


def serve(portal: str | None, whitelist: Sequence[str] | None, handler: Handler) -> Portal:
    """Opens the portal.

    Args:
        portal: `host:port`; a port alone means it on all addresses; 0 or none means the first free default.
        whitelist: networks whose clients are served, in CIDR form; none for loopback only.
        handler: answers the questions, in several threads at once.

    Raises:
        PortalError: the address is bad, not this host's, or busy.
    """
    host, port = _address(portal)
    try:
        allowed = [ipaddress.ip_network(cidr) for cidr in (LOOPBACK if whitelist is None else whitelist)]
    except ValueError as error:
        raise PortalError(f"failed to parse rpc portal whitelist: {error}") from error
    failure: OSError | None = None
    for candidate in DEFAULT_PORTS if port == 0 else (port,):
        try:
            return Portal(_Server(host, candidate, allowed, handler))
        except OSError as error:
            failure = error
    if port == 0:
        raise PortalError("No free port found for RPC portal")
    raise PortalError(f"can't listen on rpc portal {portal}: {failure}")


def ask(host: str, port: int, question: str) -> object:
    """Asks a running `easytier-core`.

    Raises:
        PortalError: nobody there, another program, or the answer was that it can't.
    """
    where = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=CLIENT_PATIENCE) as connection:
            connection.sendall(json.dumps({"protocol": PROTOCOL, "question": question}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
    except ConnectionRefusedError as error:
        raise PortalError(f"no easytier-core answers on {where}: {error}") from error
    except OSError as error:
        raise PortalError(f"{_foreign(where)} ({error})") from error
    message = _message(line)
    if message is None:
        raise PortalError(_foreign(where))
    if "error" in message:
        raise PortalError(f"easytier-core on {where}: {message['error']}")
    return message.get("answer")


def _foreign(where: str) -> str:
    return f"what listens on {where} is not this easytier-core: it does not speak {PROTOCOL}"


def _message(line: bytes) -> Mapping[str, object] | None:
    try:
        message: object = json.loads(line)
    except ValueError:
        return None
    if not isinstance(message, dict):
        return None
    known = cast(Mapping[str, object], message)
    return known if known.get("protocol") == PROTOCOL else None


def _address(portal: str | None) -> tuple[str, int]:
    if portal is None:
        return "0.0.0.0", 0  # noqa: S104 - upstream's default; clients are checked against the whitelist
    if portal.isascii() and portal.isdigit() and int(portal) < 65536:
        # Upstream takes a port alone literally, 0 included; 0 would be a port that nobody knows.
        return "0.0.0.0", int(portal)  # noqa: S104 - the same
    host, _, port = portal.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise PortalError(f"failed to parse rpc portal address: {portal}: {error}") from error
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise PortalError(f"failed to parse rpc portal address: {portal}: {port!r} is no port")
    return str(address), int(port)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        host: str,
        port: int,
        allowed: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network],
        handler: Handler,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._allowed = allowed
        self.handler = handler
        super().__init__((host, port), _Connection)

    def verify_request(self, request: object, client_address: object) -> bool:
        del request
        client = ipaddress.ip_address(str(cast(Sequence[object], client_address)[0]))
        return any(client in network for network in self._allowed)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no fault of this node."""


class _Connection(socketserver.StreamRequestHandler):
    timeout = SERVER_PATIENCE

    def handle(self) -> None:
        message = _message(self.rfile.readline(QUESTION_LIMIT))
        if message is None:
            return
        reply: dict[str, object] = {"protocol": PROTOCOL}
        try:
            reply["answer"] = cast(_Server, self.server).handler(str(message.get("question")))
        except LookupError as error:
            reply["error"] = str(error.args[0])
        self.wfile.write(json.dumps(reply).encode() + b"\n")
