"""Runs the program against Pulumi's mocks, which show what it asks for and reach no host.

The mock stands for the engine and the `command` plugin: it records every registered resource and answers a command
with the line of result that its script would end with. What the scripts really do is for the lab to show.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import runpy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pulumi
from pulumi.runtime import mocks, stack
from pulumi.runtime.settings import SETTINGS

PROGRAM = Path(__file__).parents[2] / "__main__.py"
SECRET = "canary-network-secret"

FACTS = "ready architecture=x86_64 easytier=2.6.4 ray=2.60.0 python=3.11.2 venv=/opt/rlinf-cloud-edge/ray"


def created(args: mocks.MockResourceArgs) -> dict[str, Any]:
    """What a resource has that its provider gives it."""
    match args.typ:
        case "aws:ec2/eip:Eip":
            return {"publicIp": f"203.0.113.{100 + len(args.name)}", "allocationId": f"eipalloc-{args.name}"}
        case "pulumi-python:dynamic/cloudedge:HostKey":
            return {"private_key": f"canary-host-key of {args.name}", "public_key": f"ssh-ed25519 AAAA{args.name}"}
        case "pulumi-python:dynamic/cloudedge:Launch":
            return {"kept": args.inputs["offered"]}
        case _:
            return {}


@dataclass
class Recorder(mocks.Mocks):
    """What the program has registered, in that order."""

    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name of a host to the line that its checks end with, where that is not `FACTS`."""
    resources: dict[str, mocks.MockResourceArgs] = field(default_factory=dict[str, mocks.MockResourceArgs])
    requests: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Name to the options of every registered resource, with the names of those it depends on."""
    exports: dict[str, Any] = field(default_factory=dict[str, Any])
    """The stack's outputs."""
    answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = field(
        default_factory=dict[str, Callable[[dict[str, Any]], dict[str, Any]]]
    )
    """Function of a provider to what answers it; any other is one that the program has no need for."""
    secret_exports: set[str] = field(default_factory=set[str])
    """Names of those that are secret."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        self.resources[args.name] = args
        outputs = dict(args.inputs)
        if args.typ == "command:remote:Command":
            host, _, step = args.name.rpartition("-")
            line = self.facts.get(host, FACTS) if step == "prepare" else f"done {args.name}"
            outputs |= {"stdout": f"{line}\n", "stderr": ""}
        outputs |= created(args)
        return f"{args.name}-id", outputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        if args.token not in self.answers:
            raise AssertionError(f"the program calls {args.token}, which it has no need for")
        return self.answers[args.token](args.args), []

    @property
    def commands(self) -> dict[str, dict[str, Any]]:
        """Name to inputs of every remote command."""
        return {name: args.inputs for name, args in self.resources.items() if args.typ == "command:remote:Command"}


class Monitor(mocks.MockMonitor):
    """Records the options of resources, which the mocks are not shown."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.recorder = recorder

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the name of the call
        self.recorder.requests[request.name] = {
            "retainOnDelete": request.retainOnDelete,
            "ignoreChanges": list(request.ignoreChanges),
            "deletedWith": request.deletedWith.rpartition("::")[2],
            "replaceOnChanges": list(request.replaceOnChanges),
            "deleteBeforeReplace": request.deleteBeforeReplace,
            "additionalSecretOutputs": list(request.additionalSecretOutputs),
            "dependencies": [urn.rpartition("::")[2] for urn in request.dependencies],
        }
        return super().RegisterResource(request)


def run_program(
    cluster: dict[str, Any],
    *,
    secret: str | None = SECRET,
    folder: Path = PROGRAM.parent,
    config: Mapping[str, str] = MappingProxyType({}),
    plain: Collection[str] = (),
    recorder: Recorder | None = None,
) -> Recorder:
    """Runs `__main__.py` with these settings; returns what it asked for.

    Args:
        cluster: the settings.
        secret: the network secret.
        folder: that of Pulumi.yaml.
        config: further configuration, encrypted.
        plain: names of configuration that is not.
        recorder: what records; a new one when left out.

    Raises:
        Refused: as the program does.
    """
    # A context of its own: Pulumi keeps the stack that is being run in context variables.
    config = {**config, **({} if secret is None else {"networkSecret": secret})}
    recorder = recorder or Recorder()
    return contextvars.Context().run(
        _run, {"cluster": json.dumps(cluster), **config}, {"cluster", *plain}, folder, recorder
    )


def _run(config: Mapping[str, str], plain: Collection[str], folder: Path, recorder: Recorder) -> Recorder:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    mocks.set_mocks(recorder, project="rlinf-cloud-edge", stack="test", preview=False, monitor=Monitor(recorder))
    names = {name: f"rlinf-cloud-edge:{name}" for name in config}
    secrets = [names[name] for name in config if name not in plain]
    pulumi.runtime.set_all_config({names[name]: value for name, value in config.items()}, secrets)

    async def program() -> None:
        with contextlib.chdir(folder):
            runpy.run_path(str(PROGRAM), run_name="__main__")
        await stack.wait_for_rpcs()
        root = pulumi.runtime.get_root_resource()
        assert isinstance(root, stack.Stack)
        for name, value in root.outputs.items():
            output = pulumi.Output.from_input(value)
            recorder.exports[name] = await output.future()
            if await output.is_secret():
                recorder.secret_exports.add(name)

    try:
        loop.run_until_complete(program())
    finally:
        # What a program that failed had begun must not reach the next one, by way of Pulumi's globals.
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        SETTINGS.outputs.clear()  # pyright: ignore[reportAttributeAccessIssue]  # a proxy that pyright misreads
        loop.close()
    return recorder


def settings_of(command: dict[str, Any]) -> dict[str, str]:
    """The `KEY=value` settings on the standard input of a command that is not `prepare`."""
    stdin = plain(command["stdin"])
    return dict(line.split("=", 1) for line in stdin.splitlines())


def plain(value: Any) -> Any:
    """A value without the wrapping that marks it secret."""
    return value["value"] if isinstance(value, dict) and "value" in value else value
