"""The `ResourceProvider` gRPC service: from the engine's messages to the resources and back.

Methods that are not here are answered "unimplemented" by gRPC itself, as the original answers them: `Handshake`,
`DiffConfig`, `Parameterize`, `Construct`, `Call`, `GetMapping`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import empty_pb2

from . import diffs, resources
from .checks import Fault, faults
from .operation import INFO, Cancellation, EngineLog, FailedError, Operation
from .protocol import plugin_pb2, provider_pb2
from .shapes import RESOURCES, RUN_FUNCTION, RUN_INPUTS, ResourceType
from .values import Properties, decode, encode, plain_object

if TYPE_CHECKING:
    from google.protobuf.message import Message

    Context = grpc.aio.ServicerContext[Any, Any]
    Method = Callable[[Any], Awaitable[Message]]

VERSION = "1.2.1"
_STANDS_IN = (
    f"commands are run by rlinf-cloud-edge's substitute for Pulumi's command plugin {VERSION}, which can't be had here"
)


class Provider:
    """One provider process: its engine, its configuration, the calls under way."""

    def __init__(self, log: EngineLog) -> None:
        self._log = log
        self._sends_old_inputs = False
        self._cancelled = False
        self._announced = False
        self._under_way: set[Cancellation] = set()
        self._tasks: set[asyncio.Task[Message]] = set()

    def handler(self) -> grpc.GenericRpcHandler:
        """The service, for a server."""
        messages = provider_pb2
        empty = empty_pb2.Empty
        methods: dict[str, tuple[Method, type[Message]]] = {
            "GetPluginInfo": (self.get_plugin_info, empty),
            "GetSchema": (self.get_schema, messages.GetSchemaRequest),
            "Attach": (self.attach, plugin_pb2.PluginAttach),
            "CheckConfig": (self.check_config, messages.CheckRequest),
            "Configure": (self.configure, messages.ConfigureRequest),
            "Check": (self.check, messages.CheckRequest),
            "Diff": (self.diff, messages.DiffRequest),
            "Create": (self.create, messages.CreateRequest),
            "Read": (self.read, messages.ReadRequest),
            "Update": (self.update, messages.UpdateRequest),
            "Delete": (self.delete, messages.DeleteRequest),
            "Invoke": (self.invoke, messages.InvokeRequest),
            "Cancel": (self.cancel, empty),
        }
        return grpc.method_handlers_generic_handler(
            "pulumirpc.ResourceProvider",
            {
                name: grpc.unary_unary_rpc_method_handler(
                    self._served(method),
                    request_deserializer=request.FromString,
                    response_serializer=lambda message: message.SerializeToString(),
                )
                for name, (method, request) in methods.items()
            },
        )

    async def get_plugin_info(self, _request: empty_pb2.Empty) -> plugin_pb2.PluginInfo:
        """The version this plugin stands in for."""
        return plugin_pb2.PluginInfo(version=VERSION)

    async def get_schema(self, _request: provider_pb2.GetSchemaRequest) -> provider_pb2.GetSchemaResponse:
        """The schema."""
        from .schema import schema  # noqa: PLC0415  # seldom asked for

        return provider_pb2.GetSchemaResponse(schema=schema(VERSION))

    async def attach(self, request: plugin_pb2.PluginAttach) -> empty_pb2.Empty:
        """Logs to another engine from now on."""
        self._log.attach(request.address)
        return empty_pb2.Empty()

    async def check_config(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """The provider has no configuration of its own: it comes back as it is."""
        return provider_pb2.CheckResponse(inputs=request.news)

    async def configure(self, request: provider_pb2.ConfigureRequest) -> provider_pb2.ConfigureResponse:
        """Secrets, resources, outputs and previews are all understood."""
        self._sends_old_inputs = request.sends_old_inputs and request.sends_old_inputs_to_delete
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=True, acceptOutputs=True
        )

    async def check(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """Inputs, checked and with their defaults."""
        inputs, found = resources.check(_resource(request.urn), decode(request.news))
        return provider_pb2.CheckResponse(inputs=encode(inputs), failures=_failures(found))

    async def diff(self, request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
        """What changed."""
        resource, state, inputs = _resource(request.urn), decode(request.olds), decode(request.news)
        for ignored in request.ignoreChanges:
            if ignored in state:
                inputs[ignored] = state[ignored]
        inputs = {key: value for key, value in inputs.items() if key != "version" and not key.startswith("__")}
        old = (
            decode(request.old_inputs)
            if self._sends_old_inputs
            else {name: state[name] for name in resource.inputs.by_name if name in state}
        )
        return diffs.response(
            diffs.changes(old, inputs),
            lambda path: (
                not resource.updatable or (path in resource.inputs.by_name and resource.inputs.by_name[path].replaces)
            ),
        )

    async def create(self, request: provider_pb2.CreateRequest) -> provider_pb2.CreateResponse:
        """Runs `create`."""
        async with self._operation(request.urn, request.timeout, quiet=request.preview) as operation:
            created = await resources.create(
                operation, _resource(request.urn), decode(request.properties), preview=request.preview
            )
        return provider_pb2.CreateResponse(id=created.identifier, properties=encode(created.state))

    async def read(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        """There is nothing to read: the state comes back as it is."""
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    async def update(self, request: provider_pb2.UpdateRequest) -> provider_pb2.UpdateResponse:
        """Runs `update`, else `create`."""
        resource, old, inputs = _resource(request.urn), decode(request.olds), decode(request.news)
        for ignored in request.ignoreChanges:
            if ignored in old:
                inputs[ignored] = old[ignored]
        async with self._operation(request.urn, request.timeout, quiet=request.preview) as operation:
            state = await resources.update(operation, resource, old, inputs, preview=request.preview)
        return provider_pb2.UpdateResponse(properties=encode(state))

    async def delete(self, request: provider_pb2.DeleteRequest) -> empty_pb2.Empty:
        """Runs `delete` of the old state."""
        async with self._operation(request.urn, request.timeout) as operation:
            await resources.delete(operation, _resource(request.urn), decode(request.properties))
        return empty_pb2.Empty()

    async def invoke(self, request: provider_pb2.InvokeRequest) -> provider_pb2.InvokeResponse:
        """Runs a command on this machine, in previews too."""
        from . import local_command  # noqa: PLC0415  # seldom asked for

        if request.tok != RUN_FUNCTION:
            raise FailedError(f"Invoke '{request.tok.partition(':')[2]}' not found", grpc.StatusCode.NOT_FOUND)
        inputs = decode(request.args)
        found = faults(inputs, RUN_INPUTS)
        if found:
            return provider_pb2.InvokeResponse(failures=_failures(found))
        async with self._operation("", 0) as operation:
            values = plain_object(inputs)
            result = await local_command.run(operation, str(values["command"]), values, {})
        returned: Properties = {**inputs, **result}
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(returned))
        return response

    async def cancel(self, _request: empty_pb2.Empty) -> empty_pb2.Empty:
        """Cancels what is under way and what is still to come."""
        self._cancelled = True
        for cancellation in self._under_way:
            cancellation.cancel()
        return empty_pb2.Empty()

    @contextlib.asynccontextmanager
    async def _operation(self, urn: str, timeout: float, *, quiet: bool = False) -> AsyncGenerator[Operation]:
        cancellation = Cancellation()
        if self._cancelled:
            cancellation.cancel()
        deadline = asyncio.get_running_loop().call_later(int(timeout), cancellation.expire) if timeout else None
        self._under_way.add(cancellation)
        try:
            if not quiet and not self._announced:
                self._announced = True
                await self._log.write(INFO, _STANDS_IN)
            yield Operation(urn, self._log, cancellation)
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
            except FailedError as failure:
                await context.abort(failure.status, failure.message)
                raise

        return serve


def _resource(urn: str) -> ResourceType:
    token = urn.split("::")[2].rpartition("$")[2]
    resource = RESOURCES.get(token)
    if resource is None:
        raise FailedError(f"Resource '{token.partition(':')[2]}' not found", grpc.StatusCode.NOT_FOUND)
    return resource


def _failures(found: list[Fault]) -> list[provider_pb2.CheckFailure]:
    return [provider_pb2.CheckFailure(property=fault.property_name, reason=fault.reason) for fault in found]
