"""The lab's download mirror: a folder served over HTTP/1.1, read-only, with byte ranges and keep-alive.

A script of its own, of the standard library alone: `mirror_server.py FOLDER ADDRESS PORT`. It runs until it is
killed, and logs each request to standard error. It has no TLS, no caching headers and no authentication: a lab has
no strangers.
"""

from __future__ import annotations

import argparse
import os
import re
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class RangeError(Exception):
    """A range that the file does not have."""


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Reads a Range header.

    Args:
        header: its value; several ranges at once are not supported, and are answered with the whole file.
        size: of the file in bytes.

    Returns:
        First byte and the byte after the last, or None for the whole file.

    Raises:
        RangeError: no byte of the range is in the file.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= end:
        raise RangeError(header)
    return start, end


class Handler(SimpleHTTPRequestHandler):
    """Serves one folder: files whole or in part, and listings of folders."""

    protocol_version = "HTTP/1.1"
    server_version = "mirror"
    # Headers and body are written apart: without this, the second write waits for an acknowledgement of the first.
    disable_nagle_algorithm = True

    def send_head(self) -> BinaryIO | None:
        """Sends the headers; returns the body, at its start, or None where there is none to send."""
        path = Path(self.translate_path(self.path))
        self._remaining: int | None = None
        if not path.is_file():
            return super().send_head()
        file = path.open("rb")
        status = os.fstat(file.fileno())
        try:
            part = byte_range(self.headers.get("Range"), status.st_size)
        except RangeError:
            file.close()
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{status.st_size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        start, end = part or (0, status.st_size)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
        if part:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{status.st_size}")
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", self.date_time_string(int(status.st_mtime)))
        self.end_headers()
        file.seek(start)
        self._remaining = end - start
        return file

    def copyfile(self, source: BinaryIO, outputfile: BinaryIO) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # typeshed's names are private protocols
        """Sends the body, from the kernel's cache straight to the socket where it is a file."""
        if self._remaining is None:
            super().copyfile(source, outputfile)
            return
        if self._remaining:
            self.connection.sendfile(source, source.tell(), self._remaining)


class Server(ThreadingHTTPServer):
    """One thread for each connection; many hosts may ask at once."""

    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is nothing to report."""


def main() -> None:
    """Serves until killed."""
    parser = argparse.ArgumentParser(description="Serve a folder over HTTP/1.1 with byte ranges, until killed.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    arguments = parser.parse_args()
    server = Server((arguments.address, arguments.port), partial(Handler, directory=os.fspath(arguments.folder)))
    server.serve_forever()


if __name__ == "__main__":
    main()
