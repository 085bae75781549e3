"""One command on a logged-in SSH connection: its environment, its input, its output, its end."""

from __future__ import annotations

import asyncio

from asyncssh import SSHClientConnection, SSHClientSession
from asyncssh.channel import SSHClientChannel
from asyncssh.constants import EXTENDED_DATA_STDERR
from asyncssh.packet import String

from .output_log import Output

_WINDOW = 2 * 1024 * 1024
_PACKET = 32 * 1024
_SIGNALS = {
    "ABRT": 6, "ALRM": 14, "FPE": 8, "HUP": 1, "ILL": 4, "INT": 2, "KILL": 9, "PIPE": 13, "QUIT": 3, "SEGV": 11,
    "TERM": 15,
}  # fmt: skip


class Shell(SSHClientSession[bytes]):
    """Receives what one remote command sends; `ended` holds how it ended: `None` for success, else why."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._status: int | None = None
        self._signal: tuple[str, str] | None = None
        self.ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Passes output on."""
        self._output.feed("stderr" if datatype == EXTENDED_DATA_STDERR else "stdout", data)

    def exit_status_received(self, status: int) -> None:
        """Notes the exit status."""
        self._status = status

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002  # asyncssh passes it; no message holds it
        msg: str,
        lang: str,  # noqa: ARG002  # the same
    ) -> None:
        """Notes the signal that ended the command."""
        self._signal = (signal, msg)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # how the channel ended is no matter
        """The channel is closed, so the command has ended, or the connection has."""
        if not self.ended.done():
            self.ended.set_result(self._reason())

    def _reason(self) -> str | None:
        if self._signal:
            name, message = self._signal
            text = f"Process exited with status {128 + _SIGNALS.get(name, 0)} from signal {name}"
            return f"{text}. Reason was: {message}" if message else text
        if self._status is None:
            return "wait: remote command exited without exit status or exit signal"
        return f"Process exited with status {self._status}" if self._status else None


class CommandChannel(SSHClientChannel[bytes]):
    """A session channel whose environment requests are answered, which asyncssh's own never waits for."""

    unsent = False
    """Whether the channel was closed before all input was sent: the command didn't wait for it."""

    @classmethod
    def on(cls, connection: SSHClientConnection) -> CommandChannel:
        """A channel, not opened yet."""
        return cls(connection, asyncio.get_running_loop(), "strict", None, "strict", _WINDOW, _PACKET)

    async def open(self, shell: Shell) -> None:
        """Opens the channel. Raises `asyncssh.ChannelOpenError` where the server refuses."""
        (await self._open(b"session")).check_end()
        self._session = shell
        shell.connection_made(self)

    async def set_environment(self, name: str, value: str) -> bool:
        """Whether the server took the variable. Stock OpenSSH takes `LANG` and `LC_*` only."""
        return bool(await self._make_request(b"env", String(name), String(value)))

    def _close_send(self) -> None:
        self.unsent = self.unsent or self._send_buf_len > 0
        super()._close_send()

    def send(self, data: bytes) -> None:
        """Sends all of the command's input, and its end.

        A command may have ended before: what it could have left unread in its window is then no fault.
        """
        try:
            self.write(data)  # pyright: ignore[reportUnknownMemberType]  # asyncssh types it only inside
            self.write_eof()
        except BrokenPipeError:
            self.unsent = self.unsent or len(data) > _WINDOW

    async def execute(self, command: str) -> bool:
        """Starts `command`; whether the server did."""
        if not await self._make_request(b"exec", String(command)):
            return False
        self._session.session_started()
        self._conn.create_task(self._start_reading(), self.logger)
        return True
