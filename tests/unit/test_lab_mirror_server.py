"""The lab's download mirror, asked over loopback."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from lab.mirror_server import Handler, RangeError, Server, byte_range

CONTENT = bytes(range(256)) * 8


@pytest.fixture
def connection(tmp_path: Path) -> Generator[http.client.HTTPConnection, None, None]:
    """A connection to a mirror that serves `file.bin`, `empty` and the folder `wheels/`."""
    (tmp_path / "file.bin").write_bytes(CONTENT)
    (tmp_path / "empty").touch()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "a-1.0+cpu-py3-none-any.whl").write_bytes(b"wheel")
    server = Server(("127.0.0.1", 0), partial(_QuietHandler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    yield client
    client.close()
    server.shutdown()
    server.server_close()
    thread.join()


class _QuietHandler(Handler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's name)
        pass


def ask(
    connection: http.client.HTTPConnection, path: str, *, method: str = "GET", ranged: str | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection.request(method, path, headers={"Range": ranged} if ranged else {})
    response = connection.getresponse()
    return response.status, response.read(), response.headers


def test_one_connection_serves_many_files(connection: http.client.HTTPConnection) -> None:
    for path, expected in (("/file.bin", CONTENT), ("/empty", b""), ("/file.bin", CONTENT)):
        status, body, _ = ask(connection, path)
        assert (status, body) == (200, expected)
    first = connection.sock
    ask(connection, "/file.bin")
    assert connection.sock is first


@pytest.mark.parametrize(
    ("ranged", "start", "end"),
    [("bytes=0-9", 0, 10), ("bytes=2000-", 2000, 2048), ("bytes=-5", 2043, 2048)],
)
def test_a_range_is_served_with_its_place(
    connection: http.client.HTTPConnection, ranged: str, start: int, end: int
) -> None:
    status, body, headers = ask(connection, "/file.bin", ranged=ranged)
    assert (status, body) == (206, CONTENT[start:end])
    assert headers["Content-Range"] == f"bytes {start}-{end - 1}/2048"


def test_a_range_beyond_the_end_is_refused_and_the_connection_lives_on(
    connection: http.client.HTTPConnection,
) -> None:
    status, body, headers = ask(connection, "/file.bin", ranged="bytes=5000-")
    assert (status, body, headers["Content-Range"]) == (416, b"", f"bytes */{len(CONTENT)}")
    assert ask(connection, "/file.bin")[0] == 200


def test_the_size_is_told_without_the_file(connection: http.client.HTTPConnection) -> None:
    status, body, headers = ask(connection, "/file.bin", method="HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", str(len(CONTENT)))
    assert headers["Accept-Ranges"] == "bytes"


def test_a_folder_lists_its_files_as_links(connection: http.client.HTTPConnection) -> None:
    status, body, _ = ask(connection, "/wheels/")
    assert status == 200
    assert b'href="a-1.0%2Bcpu-py3-none-any.whl"' in body


@pytest.mark.parametrize("path", ["/nothing", "/../etc/passwd", "/wheels/../../etc/passwd"])
def test_nothing_outside_the_folder_is_served(connection: http.client.HTTPConnection, path: str) -> None:
    assert ask(connection, path)[0] == 404


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", (0, 1)),
        ("bytes=5-", (5, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        ("bytes=90-1000", (90, 100)),
        ("bytes=-", None),
        ("bytes=9-3", None),
        ("bytes=0-1,5-6", None),
        ("lines=1-2", None),
    ],
)
def test_a_range_header_is_read_as_rfc_9110_says(header: str | None, expected: tuple[int, int] | None) -> None:
    assert byte_range(header, 100) == expected


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=-0", "bytes=200-300"])
def test_a_range_with_no_byte_in_the_file_is_told_from_one_that_is_not_understood(header: str) -> None:
    with pytest.raises(RangeError):
        byte_range(header, 100)
