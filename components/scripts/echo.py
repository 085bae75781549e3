"""echo.py ADDRESS PORT: an echo service (RFC 862) on the overlay address, for hosts without systemd.

The same as rlinf-echo.socket and rlinf-echo@.service: it can listen before the overlay has its address, serves 64
connections at once, and each for 30 seconds. For Python 3.8 and up.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

_IP_FREEBIND = 15  # linux/in.h; Python names it from 3.12 on
_CONNECTIONS = 64
_SECONDS = 30

_open = 0


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what one connection sends, until it ends or its time is up."""
    global _open  # noqa: PLW0603  # one number for the whole service
    _open += 1
    try:
        if _open <= _CONNECTIONS:
            await asyncio.wait_for(_copy(reader, writer), _SECONDS)
    except (OSError, asyncio.TimeoutError):  # noqa: UP041  # two different ones before Python 3.11
        pass
    finally:
        _open -= 1
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        data = await reader.read(1 << 16)
        if not data:
            return
        writer.write(data)
        await writer.drain()


async def serve(address: str, port: int) -> None:
    """Serves for ever."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        listener.bind((address, port))
        server = await asyncio.start_server(echo, sock=listener)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
