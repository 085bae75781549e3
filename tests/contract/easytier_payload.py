"""A TCP payload between two hosts of a test: one end serves, the other sends and checks the hash.

Run inside a host's network namespace, with the standard library alone. `serve PORT` prints `ready` and
answers one connection after another until it is ended; `send ADDRESS PORT BYTES LIMIT` prints the seconds it
took, or exits with 1.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time

BLOCK = os.urandom(1 << 20)


def serve(port: int) -> None:
    """Reads a length and that many bytes from each client, and answers with their SHA-256."""
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                digest = hashlib.sha256()
                left = int(stream.readline() or b"0")
                while left and (chunk := stream.read(min(left, 1 << 20))):
                    digest.update(chunk)
                    left -= len(chunk)
                connection.sendall(digest.digest())


def send(address: str, port: int, count: int, limit: float) -> float:
    """Sends bytes and checks the answer; the seconds that took."""
    started = time.monotonic()
    digest = hashlib.sha256()
    with socket.create_connection((address, port), timeout=limit) as connection:
        connection.sendall(b"%d\n" % count)
        left = count
        while left:
            chunk = BLOCK[: min(left, len(BLOCK))]
            connection.sendall(chunk)
            digest.update(chunk)
            left -= len(chunk)
        with connection.makefile("rb") as stream:
            answer = stream.read(digest.digest_size)
    if answer != digest.digest():
        raise ValueError(f"{count} bytes to {address} came out changed")
    return time.monotonic() - started


def main(arguments: list[str]) -> int:
    """Serves or sends."""
    match arguments:
        case ["serve", port]:
            serve(int(port))
        case ["send", address, port, count, limit]:
            try:
                print(send(address, int(port), int(count), float(limit)))
            except (OSError, ValueError) as error:
                print(error, file=sys.stderr)
                return 1
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
