"""The `ResourceProvider` gRPC service: from the engine's messages to the resources and back.

Methods that are not here are answered "unimplemented" by gRPC itself, as the original answers them: `Handshake`,
`DiffConfig`, `Parameterize`, `Construct`, `Call`, `GetMapping`.
"""

from __future__ import annotations

import grpc
from google.protobuf import empty_pb2

from lab.plugin_kit import diffs
from lab.plugin_kit.operation import EngineLog, FailedError
from lab.plugin_kit.protocol import provider_pb2
from lab.plugin_kit.service import Service, token_of
from lab.plugin_kit.values import Properties, decode, encode, plain_object

from . import resources
from .checks import Fault, faults
from .shapes import RESOURCES, RUN_FUNCTION, RUN_INPUTS, ResourceType

VERSION = "1.2.1"
_STANDS_IN = (
    f"commands are run by rlinf-cloud-edge's substitute for Pulumi's command plugin {VERSION}, which can't be had here"
)


class Provider(Service):
    """The provider, as one process serves it."""

    def __init__(self, log: EngineLog) -> None:
        super().__init__(log, VERSION, _STANDS_IN)
        self._sends_old_inputs = False

    async def get_schema(self, _request: provider_pb2.GetSchemaRequest) -> provider_pb2.GetSchemaResponse:
        """The schema."""
        from .schema import schema  # noqa: PLC0415  # seldom asked for

        return provider_pb2.GetSchemaResponse(schema=schema(VERSION))

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
        async with self.operation(request.urn, request.timeout, quiet=request.preview) as operation:
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
        async with self.operation(request.urn, request.timeout, quiet=request.preview) as operation:
            state = await resources.update(operation, resource, old, inputs, preview=request.preview)
        return provider_pb2.UpdateResponse(properties=encode(state))

    async def delete(self, request: provider_pb2.DeleteRequest) -> empty_pb2.Empty:
        """Runs `delete` of the old state."""
        async with self.operation(request.urn, request.timeout) as operation:
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
        async with self.operation("", 0) as operation:
            values = plain_object(inputs)
            result = await local_command.run(operation, str(values["command"]), values, {})
        returned: Properties = {**inputs, **result}
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(returned))
        return response


def _resource(urn: str) -> ResourceType:
    token = token_of(urn)
    resource = RESOURCES.get(token)
    if resource is None:
        raise FailedError(f"Resource '{token.partition(':')[2]}' not found", grpc.StatusCode.NOT_FOUND)
    return resource


def _failures(found: list[Fault]) -> list[provider_pb2.CheckFailure]:
    return [provider_pb2.CheckFailure(property=fault.property_name, reason=fault.reason) for fault in found]
