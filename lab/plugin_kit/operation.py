"""What one call of the engine carries: whom it is about, its log, its cancellation, and how it fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import grpc

from .protocol import engine_pb2, provider_pb2, status_pb2

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Struct

INFO = engine_pb2.INFO
WARNING = engine_pb2.WARNING
ERROR = engine_pb2.ERROR
DEBUG = engine_pb2.DEBUG

_UNLIMITED = 400 * 1024 * 1024
GRPC_OPTIONS = [
    ("grpc.max_receive_message_length", _UNLIMITED),
    ("grpc.max_send_message_length", _UNLIMITED),
]


class FailedError(Exception):
    """The call fails with this message, for the user to read, and this status."""

    def __init__(self, message: str, status: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        super().__init__(message)
        self.message = message
        self.status = status

    def within(self, prefix: str) -> FailedError:
        """The same failure, its message after `prefix`."""
        return FailedError(f"{prefix}{self.message}", self.status)


class PartlyDoneError(FailedError):
    """The call fails after it has done something, which the engine then records, with this as what is wrong with it.

    Attributes:
        identifier: of what there is now.
        properties: what is known of it.
    """

    def __init__(self, message: str, identifier: str, properties: Struct) -> None:
        super().__init__(message)
        self.identifier = identifier
        self.properties = properties

    def details(self) -> bytes:
        """What the engine reads of it, as gRPC carries the details of a failure (google.rpc.Status)."""
        status = status_pb2.Status(code=int(self.status.value[0]), message=self.message)
        status.details.add().Pack(
            provider_pb2.ErrorResourceInitFailed(id=self.identifier, properties=self.properties, reasons=[self.message])
        )
        return status.SerializeToString()


class Cancellation:
    """Set once, by the engine's `Cancel` or by the call's own time limit (a resource's `customTimeouts`)."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._failure = FailedError("context canceled", grpc.StatusCode.CANCELLED)

    def cancel(self) -> None:
        """Cancels the call."""
        self._event.set()

    def expire(self) -> None:
        """Cancels the call because its time is up."""
        if not self.is_set():
            self._failure = FailedError("context deadline exceeded", grpc.StatusCode.DEADLINE_EXCEEDED)
            self._event.set()

    def is_set(self) -> bool:
        """Whether the call is cancelled."""
        return self._event.is_set()

    @property
    def failure(self) -> FailedError:
        """How a cancelled call fails."""
        return self._failure

    async def wait(self) -> None:
        """Returns when the call is cancelled."""
        await self._event.wait()

    async def pause(self, seconds: float) -> bool:
        """Waits that long; returns at once, and `False`, when the call is cancelled."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return True
        return False


class _LogMethod(Protocol):
    def __call__(self, request: engine_pb2.LogRequest) -> Awaitable[object]: ...


class EngineLog:
    """The engine's log, over gRPC. Without an engine, or when it is gone, messages go to standard error."""

    def __init__(self, address: str | None) -> None:
        self._log: _LogMethod | None = None
        self._channel: grpc.aio.Channel | None = None
        if address:
            self.attach(address)

    def attach(self, address: str) -> None:
        """From now on, log to the engine at this address."""
        self._channel = grpc.aio.insecure_channel(address, options=GRPC_OPTIONS)
        self._log = self._channel.unary_unary(
            "/pulumirpc.Engine/Log", request_serializer=engine_pb2.LogRequest.SerializeToString
        )

    async def gone(self) -> None:
        """Returns when the engine can't be reached any more; never, without one."""
        if self._channel is None:
            await asyncio.Event().wait()
            return
        await self._channel.channel_ready()
        state = grpc.ChannelConnectivity.READY
        while state not in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)

    async def write(self, severity: int, message: str, urn: str = "", *, passing: bool = False) -> None:
        """Logs one message about the resource `urn`.

        `passing` messages are shown beside a resource while it is worked on, and don't stay.
        """
        request = engine_pb2.LogRequest(urn=urn, ephemeral=passing)
        request.severity = severity  # pyright: ignore[reportAttributeAccessIssue]  # a NewType of int in the stubs
        request.message = message.encode("utf-8", "replace").decode()
        if self._log is not None:
            try:
                await self._log(request)
            except grpc.RpcError:
                pass
            else:
                return
        print(message, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Operation:
    """One call about one resource."""

    urn: str
    log: EngineLog
    cancellation: Cancellation

    @property
    def name(self) -> str:
        """The resource's name, the last part of its URN."""
        return self.urn.rpartition("::")[2]

    async def say(self, severity: int, message: str, *, passing: bool = False) -> None:
        """Logs `message` about this resource; a cancelled operation is silent."""
        if not self.cancellation.is_set():
            await self.log.write(severity, message, self.urn, passing=passing)
