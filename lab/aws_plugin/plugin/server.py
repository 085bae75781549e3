"""The `ResourceProvider` gRPC service: from the engine's messages to the account and back."""

from __future__ import annotations

from typing import Any, cast

import grpc
from google.protobuf import empty_pb2

from lab.plugin_kit import diffs
from lab.plugin_kit.operation import EngineLog, FailedError, PartlyDoneError
from lab.plugin_kit.protocol import provider_pb2
from lab.plugin_kit.service import Service, token_of
from lab.plugin_kit.values import Properties, Value, decode, encode, is_unknown, plain_object

from . import shapes
from .addresses import Eip, EipAssociation, KeyPair
from .aws import Aws, CallError
from .config import INVALID_CREDENTIALS, NO_REGION, REPLACING, config_of
from .functions import FUNCTIONS
from .instance import Instance
from .networks import InternetGateway, Route, RouteTable, RouteTableAssociation, Subnet, Vpc
from .resource import Call, Plain, Resource
from .security import EgressRule, IngressRule, SecurityGroup

VERSION = "7.51.1"
_STANDS_IN = (
    f"AWS calls go to AWS_ENDPOINT_URL through rlinf-cloud-edge's substitute for Pulumi's aws plugin {VERSION}, "
    "which can't be had here"
)

RESOURCES: dict[str, Resource] = {
    kind.shape.token: kind()
    for kind in (
        Instance, KeyPair, Eip, EipAssociation, SecurityGroup, IngressRule, EgressRule,
        Vpc, Subnet, InternetGateway, RouteTable, Route, RouteTableAssociation,
    )
}  # fmt: skip


class Provider(Service):
    """The provider, as one process serves it."""

    def __init__(self, log: EngineLog) -> None:
        super().__init__(log, VERSION, _STANDS_IN)
        self._aws: Aws | None = None

    async def get_schema(self, _request: provider_pb2.GetSchemaRequest) -> provider_pb2.GetSchemaResponse:
        """The schema of what is here."""
        from .schema import schema  # noqa: PLC0415  # seldom asked for

        return provider_pb2.GetSchemaResponse(schema=schema(VERSION, RESOURCES.values(), FUNCTIONS.values()))

    async def check_config(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """Whether there are a region and credentials that the account takes."""
        news = decode(request.news)
        answer = provider_pb2.CheckResponse(inputs=request.news)
        if any(is_unknown(value) for value in news.values()):
            return answer
        config = config_of(news)
        reason = NO_REGION if not config.region else ""
        if not reason and not config.skip_credentials_validation:
            try:
                await Aws(config).call("sts", "GetCallerIdentity")
            except CallError as error:
                refused = error.code in {"InvalidClientTokenId", "ExpiredToken", "SignatureDoesNotMatch"}
                reason = INVALID_CREDENTIALS if refused else error.message
            except FailedError as error:
                reason = error.message
        if reason:
            answer.failures.append(provider_pb2.CheckFailure(property="", reason=reason))
        return answer

    async def diff_config(self, request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
        """What changed of the configuration; another region replaces all that is in it."""
        found = diffs.changes(decode(request.olds), decode(request.news))
        return diffs.response(found, lambda path: path in REPLACING)

    async def configure(self, request: provider_pb2.ConfigureRequest) -> provider_pb2.ConfigureResponse:
        """Takes the configuration."""
        given = decode(request.args)
        for key, value in request.variables.items():
            given.setdefault(key.rpartition(":")[2], value)
        self._aws = Aws(config_of(given))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=True, acceptOutputs=True
        )

    async def check(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """Arguments, checked and with their defaults."""
        resource, news = _resource(request.urn), decode(request.news)
        name = request.urn.rpartition("::")[2]
        found = shapes.failures(news, resource.shape, name)
        if not found:
            tags = self._account.config.default_tags
            news = shapes.with_defaults(news, decode(request.olds), resource.shape, name, tags)
        return provider_pb2.CheckResponse(
            inputs=encode(news),
            failures=[provider_pb2.CheckFailure(property=path, reason=reason) for path, reason in found],
        )

    async def diff(self, request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
        """What changed."""
        resource = _resource(request.urn)
        ignored = dict.fromkeys(request.ignoreChanges)
        return shapes.diff(decode(request.old_inputs), decode(request.news), resource.shape, ignored)

    async def create(self, request: provider_pb2.CreateRequest) -> provider_pb2.CreateResponse:
        """Creates one."""
        resource, inputs = _resource(request.urn), decode(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=encode(shapes.previewed(inputs, resource.shape)))
        async with self._call(request.urn, request.timeout, inputs) as call:
            given = plain_object(inputs)
            try:
                identifier = call.exists(await _explained(f"creating {resource.title}", resource.create(call, given)))
                state = await self._state(call, resource, identifier, given)
                if state is None:
                    raise FailedError(f"creating {resource.title}: {identifier} was gone as soon as it was created")
            except FailedError as error:
                # As the bridge to Terraform's providers does with an error beside a state that has an id.
                if not call.made:
                    raise
                message = f"creating {request.urn}: {error.message}"
                raise PartlyDoneError(message, call.made[0], encode(shapes.known(inputs, resource.shape))) from None
        return provider_pb2.CreateResponse(id=identifier, properties=encode(shapes.with_secrets(state, inputs)))

    async def read(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        """What is in the account; nothing where it is gone."""
        resource, known, inputs = _resource(request.urn), decode(request.properties), decode(request.inputs)
        async with self._call(request.urn, 0, known) as call:
            state = await self._state(call, resource, request.id, plain_object({**known, **inputs}))
        if state is None:
            return provider_pb2.ReadResponse()
        found = shapes.refreshed(inputs, state, resource.shape)
        return provider_pb2.ReadResponse(
            id=request.id,
            properties=encode(shapes.with_secrets(state, inputs)),
            inputs=encode(shapes.with_secrets(found, inputs)),
        )

    async def update(self, request: provider_pb2.UpdateRequest) -> provider_pb2.UpdateResponse:
        """Changes one."""
        resource, old, inputs = _resource(request.urn), decode(request.olds), decode(request.news)
        for ignored in request.ignoreChanges:
            if ignored in old:
                inputs[ignored] = old[ignored]
        if request.preview:
            return provider_pb2.UpdateResponse(properties=encode(shapes.previewed(inputs, resource.shape, old)))
        async with self._call(request.urn, request.timeout, old) as call:
            given = plain_object(inputs)
            work = resource.update(call, request.id, plain_object(old), given)
            try:
                await _explained(f"updating {resource.title} ({request.id})", work)
            except FailedError as error:
                if resource.forgets_failed_updates:
                    raise
                message = f"updating {request.urn}: {error.message}"
                asked_for = encode(shapes.asked_for(old, inputs, resource.shape))
                raise PartlyDoneError(message, request.id, asked_for) from None
            known = plain_object({name: value for name, value in old.items() if name not in resource.shape.by_name})
            state = await self._state(call, resource, request.id, {**known, **given})
        if state is None:
            raise FailedError(
                f"Resource provider reported that the resource did not exist while updating {request.urn}.\n\n"
                "This is usually a result of the resource having been deleted outside of Pulumi, and can often be "
                "fixed by running `pulumi refresh` before updating."
            )
        return provider_pb2.UpdateResponse(properties=encode(shapes.with_secrets(state, inputs)))

    async def delete(self, request: provider_pb2.DeleteRequest) -> empty_pb2.Empty:
        """Deletes one."""
        resource, state = _resource(request.urn), decode(request.properties)
        async with self._call(request.urn, request.timeout, state) as call:
            work = resource.delete(call, request.id, plain_object(state))
            await _explained(f"deleting {resource.title} ({request.id})", work)
        return empty_pb2.Empty()

    async def invoke(self, request: provider_pb2.InvokeRequest) -> provider_pb2.InvokeResponse:
        """Looks something up, in previews too."""
        function = FUNCTIONS.get(request.tok)
        if function is None:
            raise FailedError(f"{request.tok} is no part of this substitute for the aws plugin", _UNIMPLEMENTED)
        arguments = decode(request.args)
        found = shapes.failures(arguments, function.arguments, request.tok.rpartition(":")[2])
        if found:
            failures = [provider_pb2.CheckFailure(property=path, reason=reason) for path, reason in found]
            return provider_pb2.InvokeResponse(failures=failures)
        given = plain_object(arguments)
        async with self._call("", 0, arguments) as call:
            result = await _explained(f"invoking {request.tok}", function.run(call, given))
        region = call.region or self._account.config.region
        returned: dict[str, Any] = {**given, "region": region, **result}
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(cast("Properties", returned)))
        return response

    @property
    def _account(self) -> Aws:
        if self._aws is None:
            raise FailedError("the provider has not been configured")
        return self._aws

    def _call(self, urn: str, timeout: float, properties: Properties) -> _Calling:
        region = plain_object({"region": properties.get("region")})["region"]
        return _Calling(self, urn, timeout, region if isinstance(region, str) else None)

    @property
    def account(self) -> Aws:
        """The configured account."""
        return self._account

    @staticmethod
    async def _state(call: Call, resource: Resource, identifier: str, known: Plain) -> Properties | None:
        found = await _explained(f"reading {resource.title} ({identifier})", resource.read(call, identifier, known))
        if found is None:
            return None
        found["region"] = call.region or call.aws.config.region
        return {name: _value(value) for name, value in found.items() if value is not None}


class _Calling:
    """One call of the engine, as a block: `async with … as call`."""

    def __init__(self, provider: Provider, urn: str, timeout: float, region: str | None) -> None:
        self._operation = provider.operation(urn, timeout)
        self._aws = provider.account
        self._region = region

    async def __aenter__(self) -> Call:
        return Call(self._aws, await self._operation.__aenter__(), self._region)

    async def __aexit__(self, *error: Any) -> None:  # noqa: ANN401  # passed on as it is
        await self._operation.__aexit__(*error)


_UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED


async def _explained(what: str, work: Any) -> Any:  # noqa: ANN401  # an awaitable of anything
    """Has a failure say what was being done, as the original does."""
    try:
        return await work
    except FailedError as error:
        if error.status is not grpc.StatusCode.UNKNOWN:
            raise
        raise FailedError(f"1 error occurred:\n\t* {what}: {error.message}\n\n") from None


def _value(found: Any) -> Value:  # noqa: ANN401  # what AWS said
    """A plain value as property values are: every number a float."""
    if isinstance(found, dict):
        given = cast("dict[str, Any]", found)
        return {name: _value(value) for name, value in given.items() if value is not None}
    if isinstance(found, list):
        return [_value(value) for value in cast("list[Any]", found)]
    return float(found) if isinstance(found, int) and not isinstance(found, bool) else found


def _resource(urn: str) -> Resource:
    token = token_of(urn)
    resource = RESOURCES.get(token)
    if resource is None:
        raise FailedError(f"{token} is no part of this substitute for the aws plugin", _UNIMPLEMENTED)
    return resource
