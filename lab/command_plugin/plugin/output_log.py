"""A command's output: collected, and passed on to the engine's log line by line as it comes."""

from __future__ import annotations

import asyncio
from typing import Literal

import grpc

from lab.plugin_kit.operation import INFO, FailedError, Operation

LINE_LIMIT = 64 * 1024
"""Bytes of a line, its end included, from which on the original stops reading and hangs for ever."""

Stream = Literal["stdout", "stderr"]

_LOGGED: dict[str | None, frozenset[Stream]] = {
    None: frozenset(("stdout", "stderr")),
    "stdoutAndStderr": frozenset(("stdout", "stderr")),
    "stdout": frozenset(("stdout",)),
    "stderr": frozenset(("stderr",)),
}


class Output:
    """Collects both streams of one command and logs those that `logging` names, in the order they come."""

    def __init__(self, operation: Operation, logging: str | None) -> None:
        self._operation = operation
        self._logged: frozenset[Stream] = _LOGGED.get(logging, frozenset())
        self._collected = {"stdout": bytearray(), "stderr": bytearray()}
        self._combined = bytearray()
        self._line = bytearray()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._logger = asyncio.create_task(self._log_lines())
        self.overflow: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed(self, stream: Stream, data: bytes) -> None:
        """Takes what came on `stream`."""
        self._collected[stream] += data
        self._combined += data
        if stream in self._logged:
            self._line += data
            *lines, rest = self._line.split(b"\n")
            if any(len(line) >= LINE_LIMIT for line in (*lines, rest)) and not self.overflow.done():
                self.overflow.set_result(None)
            for line in lines:
                self._lines.put_nowait(_text(line))
            self._line = rest

    async def close(self) -> None:
        """Logs what is left and returns when the engine has all of it."""
        if self._line:
            self._lines.put_nowait(_text(self._line))
        self._lines.put_nowait(None)
        await self._logger

    def result(self, stream: Stream) -> str:
        """All that came on `stream`, without its last line end. Fails if it isn't UTF-8, as the original does."""
        data = bytes(self._collected[stream]).removesuffix(b"\n")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise not_utf8() from error

    @property
    def combined(self) -> str:
        """Both streams together, for error messages."""
        return self._combined.decode("utf-8", "replace")

    async def _log_lines(self) -> None:
        while (line := await self._lines.get()) is not None:
            await self._operation.say(INFO, line, passing=True)


def line_too_long() -> FailedError:
    """The failure that stands for the original's hang on an endless line."""
    return FailedError(
        f"a line of output reached {LINE_LIMIT} bytes while it was logged: the original command plugin hangs here"
        " for ever, this substitute fails instead; break the line, or set `logging` to `none`"
    )


def not_utf8() -> FailedError:
    """The failure of a command whose output is no text."""
    return FailedError("grpc: error while marshaling: string field contains invalid UTF-8", grpc.StatusCode.INTERNAL)


def _text(line: bytes | bytearray) -> str:
    return bytes(line).removesuffix(b"\r").decode("utf-8", "replace")
