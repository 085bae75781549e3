"""The resources' lives: check, create, update and delete, in terms of property values."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias

from lab.plugin_kit.operation import FailedError, Operation
from lab.plugin_kit.values import Archive, Asset, Marked, Properties, Value, plain, plain_object

from . import checks, outputs
from .checks import Fault
from .shapes import COPY_FILE, COPY_TO_REMOTE, LOCAL_COMMAND, ResourceType

PREVIOUS = {"PULUMI_COMMAND_STDOUT": "stdout", "PULUMI_COMMAND_STDERR": "stderr"}
"""Variables that carry the outputs of the run before, and which output."""

_NO_COPY_FILE = "command:remote:CopyFile is deprecated and no part of this substitute: use command:remote:CopyToRemote"

_Run: TypeAlias = Callable[[Operation, str, Mapping[str, Value], Mapping[str, str]], Awaitable[Mapping[str, Value]]]


class Created(NamedTuple):
    """A new resource's identifier, empty where the original gives none in previews, and its state."""

    identifier: str
    state: Properties


def check(resource: ResourceType, inputs: Properties) -> tuple[Properties, list[Fault]]:
    """The inputs with defaults and secrets, and what is wrong with them; with faults no defaults are filled in."""
    found = checks.faults(inputs, resource.inputs)
    checked = inputs if found else checks.with_defaults(inputs, resource.inputs)
    if resource is COPY_FILE:
        found.append(Fault("", _NO_COPY_FILE))
    if resource is COPY_TO_REMOTE:
        found += _source_faults(inputs.get("source"))
        checked = _with_whole_source(checked)
    return checks.with_secrets(checked, resource.inputs), found


async def create(operation: Operation, resource: ResourceType, inputs: Properties, *, preview: bool) -> Created:
    """Creates the resource, or in a preview says what it will be."""
    _require(inputs, resource, "invalid inputs: ")
    if resource is COPY_TO_REMOTE:
        inputs = _with_whole_source(inputs)
        if preview:
            return Created("", inputs)
        await _copy(operation, inputs)
        return Created(secrets.token_hex(4), inputs)
    identifier = operation.name + secrets.token_hex(4)
    state: Properties = {**inputs, "stdout": "", "stderr": ""}
    if preview:
        return Created(identifier, outputs.previewed(state, inputs))
    command = plain(inputs.get("create"))
    if isinstance(command, str):
        state |= await _run(operation, resource, command, inputs, {})
    return Created(identifier, state)


async def update(
    operation: Operation, resource: ResourceType, old: Properties, inputs: Properties, *, preview: bool
) -> Properties:
    """Updates the resource from the state `old`, or in a preview says what it will be."""
    _require(old, resource, "", of_state=True)
    _require(inputs, resource, "")
    if resource is COPY_TO_REMOTE:
        new = _with_whole_source(inputs)
        if not preview and _copied(old) != _copied(new):
            await _copy(operation, new)
        return new
    kept = {name: old[name] for name in resource.state.by_name.keys() - resource.inputs.by_name if name in old}
    state: Properties = {**inputs, **plain_object(kept)}
    if preview:
        return outputs.previewed_update(state, inputs, old, resource.inputs)
    command = plain(inputs.get("update", inputs.get("create")))
    if isinstance(command, str):
        state |= await _run(operation, resource, command, inputs, old)
    return state


async def delete(operation: Operation, resource: ResourceType, state: Properties) -> None:
    """Deletes the resource with the `delete` command of its own state, if it has one."""
    if resource in (COPY_TO_REMOTE, COPY_FILE):
        return
    _require(state, resource, "", of_state=True)
    command = plain(state.get("delete"))
    if isinstance(command, str):
        await _run(operation, resource, command, state, state)


async def _run(
    operation: Operation, resource: ResourceType, command: str, inputs: Properties, old: Properties
) -> Properties:
    previous = {name: str(plain(old.get(output)) or "") for name, output in PREVIOUS.items()}
    return dict(await _runner(resource)(operation, command, plain_object(inputs), previous))


def _runner(resource: ResourceType) -> _Run:
    # Imported when first needed: a preview or an unchanged stack starts without SSH.
    if resource is LOCAL_COMMAND:
        from . import local_command  # noqa: PLC0415  # see above

        return local_command.run
    from . import remote_command  # noqa: PLC0415  # see above

    return remote_command.run


async def _copy(operation: Operation, inputs: Properties) -> None:
    from . import copy_to_remote  # noqa: PLC0415  # SSH only where it is needed

    await copy_to_remote.copy(operation, plain_object(inputs))


def _require(properties: Properties, resource: ResourceType, prefix: str, *, of_state: bool = False) -> None:
    if resource is COPY_FILE:
        raise FailedError(_NO_COPY_FILE)
    found = checks.faults(properties, resource.state if of_state else resource.inputs)
    if found:
        raise FailedError(prefix + checks.describe(found))


def _copied(properties: Properties) -> tuple[str, str]:
    """What decides whether a file is copied again: the source's hash and the remote path."""
    source = plain(properties.get("source"))
    digest = source.text("hash") if isinstance(source, Asset | Archive) else ""
    return digest, str(plain(properties.get("remotePath")))


def _source_faults(source: Value) -> list[Fault]:
    match plain(source):
        case Asset() as asset:
            if asset.text("uri") and not asset.text("path"):
                return [Fault("asset", "asset must be a path-based file asset or a text asset")]
            return []
        case Archive() as archive:
            if not archive.text("path"):
                return [Fault("archive", "archive must be a path to a file or directory")]
            return []
        case _:
            return [Fault("asset", "either asset or archive must be set")]


def _with_whole_source(properties: Properties) -> Properties:
    """`properties` with every field of an asset or archive in `source` present, as the original writes them."""
    return {**properties, "source": _whole(properties.get("source"))}


def _whole(value: Value) -> Value:
    empty: Properties = {"hash": "", "path": "", "uri": ""}
    match value:
        case Marked(element=element, secret=secret, known=known, dependencies=dependencies):
            return Marked(_whole(element), secret, known, dependencies) if known else value
        case Asset(fields=fields):
            return Asset({**empty, "text": "", **fields})
        case Archive(fields=fields):
            return Archive({**empty, "assets": {}, **fields})
        case _:
            return {}
