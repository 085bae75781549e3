"""What a listener may be written as, and the addresses that come of it. Pure.

Source: `parse_listeners` in upstream's `easytier/src/core.rs`, v2.6.4.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

PORT_OFFSETS = {"tcp": 0, "udp": 0, "wg": 1, "quic": 2, "ws": 1, "wss": 2, "faketcp": 3}
"""Protocols in upstream's order, each with what it adds to the port of the first."""

DEFAULT_PORT = 11010


def parse_listeners(written: Iterable[str]) -> list[str]:
    """Turns listeners as written on a command line into URLs.

    A port, an address, or both mean one listener for each protocol; `proto`, `proto:port` and a URL mean one.

    Raises:
        ValueError: names the one that can't be understood.
    """
    return [url for listener in written for url in _expand(listener)]


def _expand(listener: str) -> Iterator[str]:
    if (endpoint := _endpoint(listener)) is not None:
        host, port = endpoint
        for scheme, offset in PORT_OFFSETS.items():
            yield f"{scheme}://{host}:{port + offset if port else 0}"
        return
    scheme, _, rest = listener.partition(":")
    if scheme not in PORT_OFFSETS:
        raise ValueError(f"invalid listener: {listener}")
    if not rest:
        yield f"{scheme}://0.0.0.0:{DEFAULT_PORT + PORT_OFFSETS[scheme]}"
    elif _port(rest) is not None:
        yield f"{scheme}://0.0.0.0:{rest}"
    elif rest.startswith("//") and urlsplit(listener).netloc:
        yield listener
    else:
        raise ValueError(f"invalid listener: {listener}")


def _endpoint(listener: str) -> tuple[str, int] | None:
    if (port := _port(listener)) is not None:
        return "0.0.0.0", port  # noqa: S104 - what upstream listens on
    if (host := _host(listener.strip("[]"))) is not None:
        return host, DEFAULT_PORT
    address, _, after = listener.rpartition(":")
    if (port := _port(after)) is None or (address.startswith("[") != address.endswith("]")):
        return None
    host = _host(address.strip("[]"))
    if host is None or host.startswith("[") != address.startswith("["):
        return None
    return host, port


def _host(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return f"[{address}]" if address.version == 6 else str(address)


def _port(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) < 65536 else None
