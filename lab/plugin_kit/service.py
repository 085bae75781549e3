"""The `ResourceProvider` gRPC service: what is the same for every plugin.

A plugin derives from `Service` and gives the methods it has. gRPC itself answers "unimplemented" to the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import empty_pb2

from .operation import INFO, Cancellation, EngineLog, FailedError, Operation, PartlyDoneError
from .protocol import plugin_pb2, provider_pb2

if TYPE_CHECKING:
    from google.protobuf.message import Message

    Context = grpc.aio.ServicerContext[Any, Any]
    Method = Callable[[Any], Awaitable[Message]]

_REQUESTS: Mapping[str, tuple[str, type[Message]]] = {
    "GetPluginInfo": ("get_plugin_info", empty_pb2.Empty),
    "GetSchema": ("get_schema", provider_pb2.GetSchemaRequest),
    "Attach": ("attach", plugin_pb2.PluginAttach),
    "CheckConfig": ("check_config", provider_pb2.CheckRequest),
    "DiffConfig": ("diff_config", provider_pb2.DiffRequest),
    "Configure": ("configure", provider_pb2.ConfigureRequest),
    "Check": ("check", provider_pb2.CheckRequest),
    "Diff": ("diff", provider_pb2.DiffRequest),
    "Create": ("create", provider_pb2.CreateRequest),
    "Read": ("read", provider_pb2.ReadRequest),
    "Update": ("update", provider_pb2.UpdateRequest),
    "Delete": ("delete", provider_pb2.DeleteRequest),
    "Invoke": ("invoke", provider_pb2.InvokeRequest),
    "Cancel": ("cancel", empty_pb2.Empty),
}


class Service:
    """One provider process: its engine and the calls under way.

    Args:
        log: of the engine.
        version: which the plugin stands in for.
        announcement: what it says of itself before it does anything for the first time.
    """

    def __init__(self, log: EngineLog, version: str, announcement: str) -> None:
        self.log = log
        self._version = version
        self._announcement = announcement
        self._announced = False
        self._cancelled = False
        self._under_way: set[Cancellation] = set()
        self._tasks: set[asyncio.Task[Message]] = set()

    def handler(self) -> grpc.GenericRpcHandler:
        """The service, for a server."""
        return grpc.method_handlers_generic_handler(
            "pulumirpc.ResourceProvider",
            {
                name: grpc.unary_unary_rpc_method_handler(
                    self._served(getattr(self, method)),
                    request_deserializer=request.FromString,
                    response_serializer=lambda message: message.SerializeToString(),
                )
                for name, (method, request) in _REQUESTS.items()
                if hasattr(self, method)
            },
        )

    async def get_plugin_info(self, _request: empty_pb2.Empty) -> plugin_pb2.PluginInfo:
        """The version this plugin stands in for."""
        return plugin_pb2.PluginInfo(version=self._version)

    async def attach(self, request: plugin_pb2.PluginAttach) -> empty_pb2.Empty:
        """Logs to another engine from now on."""
        self.log.attach(request.address)
        return empty_pb2.Empty()

    async def cancel(self, _request: empty_pb2.Empty) -> empty_pb2.Empty:
        """Cancels what is under way and what is still to come."""
        self._cancelled = True
        for cancellation in self._under_way:
            cancellation.cancel()
        return empty_pb2.Empty()

    @contextlib.asynccontextmanager
    async def operation(self, urn: str, timeout: float, *, quiet: bool = False) -> AsyncGenerator[Operation]:
        """What one call carries, for as long as the call lasts.

        Args:
            urn: of the resource, empty where it is about none.
            timeout: seconds after which it is cancelled; 0: no limit.
            quiet: the plugin need not say what it is yet.
        """
        cancellation = Cancellation()
        if self._cancelled:
            cancellation.cancel()
        deadline = asyncio.get_running_loop().call_later(int(timeout), cancellation.expire) if timeout else None
        self._under_way.add(cancellation)
        try:
            if not quiet and not self._announced:
                self._announced = True
                await self.log.write(INFO, self._announcement)
            yield Operation(urn, self.log, cancellation)
        finally:
            self._under_way.discard(cancellation)
            if deadline:
                deadline.cancel()

    def _served(self, method: Method) -> Callable[[Any, Context], Awaitable[Message]]:
        async def serve(request: Any, context: Context) -> Message:  # noqa: ANN401  # one of the method's own type
            # A task of its own: an engine that hangs up doesn't end what it started.
            task = asyncio.ensure_future(method(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            try:
                return await asyncio.shield(task)
            except PartlyDoneError as failure:
                details = (("grpc-status-details-bin", failure.details()),)
                await context.abort(failure.status, failure.message, trailing_metadata=details)
                raise
            except FailedError as failure:
                await context.abort(failure.status, failure.message)
                raise

        return serve


def token_of(urn: str) -> str:
    """The type token in a resource's URN."""
    return urn.split("::")[2].rpartition("$")[2]
