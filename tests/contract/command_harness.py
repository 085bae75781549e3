"""Drives a plugin as the engine does: over gRPC, with an engine of its own that records what is logged."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from lab.polling import wait_for

T = TypeVar("T")
Json = dict[str, Any]

REMOTE = "command:remote:Command"
COPY = "command:remote:CopyToRemote"
LOCAL = "command:local:Command"

SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_ASSET = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

PATIENCE_S = 60.0
"""Seconds after which something that must happen is taken never to happen."""

_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def secret(value: object) -> Json:
    """A secret value."""
    return {SIGNATURE: _SECRET, "value": value}


def text_asset(text: str) -> Json:
    """A `StringAsset` as the engine sends it."""
    return {SIGNATURE: _ASSET, "text": text}


def file_asset(path: Path | str) -> Json:
    """A `FileAsset`."""
    return {SIGNATURE: _ASSET, "path": str(path)}


def file_archive(path: Path | str) -> Json:
    """A `FileArchive`."""
    return {SIGNATURE: _ARCHIVE, "path": str(path)}


def is_secret(value: object) -> bool:
    """Whether this value, as the plugin returned it, is marked secret."""
    return isinstance(value, dict) and value.get(SIGNATURE) == _SECRET


def eventually(probe: Callable[[], T | None], what: str, limit: float = PATIENCE_S) -> T:
    """The probe's first answer; fails the test, saying what was waited for, if there is none in time."""
    answer = wait_for(probe, limit)
    assert answer is not None, f"{what}: not within {limit:.0f} s"
    return answer


@dataclass(frozen=True)
class LogLine:
    """One message that the plugin sent to the engine; `passing` ones are shown only while work goes on."""

    severity: int
    message: str
    urn: str
    passing: bool


class CallError(Exception):
    """The plugin refused or failed a call."""

    def __init__(self, error: grpc.Call) -> None:
        super().__init__(error.details())
        self.code: grpc.StatusCode = error.code()
        self.message: str = error.details()
        self.recorded = _recorded(error)


def _recorded(error: grpc.Call) -> Json | None:
    """What a creation or a change that failed has left, as the engine is told it: `id`, `properties`, `reasons`."""
    carried = dict(error.trailing_metadata() or ())
    if "grpc-status-details-bin" not in carried:
        return None
    status, found = status_pb2.Status(), provider_pb2.ErrorResourceInitFailed()
    status.ParseFromString(cast("bytes", carried["grpc-status-details-bin"]))
    assert status.details[0].Unpack(found)
    return MessageToDict(found)


class _Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self) -> None:
        self.lines: list[LogLine] = []

    def Log(self, request: engine_pb2.LogRequest, context: object) -> empty_pb2.Empty:  # noqa: N802  # gRPC's name
        self.lines.append(LogLine(request.severity, request.message, request.urn, request.ephemeral))
        return empty_pb2.Empty()


@dataclass(frozen=True)
class Created:
    """A created resource."""

    id: str
    state: Json


@dataclass
class Provider:
    """One running plugin."""

    process: subprocess.Popen[str]
    stub: provider_pb2_grpc.ResourceProviderStub
    _engine: _Engine
    _engine_server: grpc.Server
    _channel: grpc.Channel
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(64))

    @classmethod
    def start(
        cls,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        *,
        executable: str = "pulumi-resource-command",
        config: Json | None = None,
    ) -> Provider:
        """Starts the plugin in `folder` as the engine would, and configures it. No SSH agent unless one is given."""
        engine = _Engine()
        server = grpc.server(ThreadPoolExecutor(16))
        engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        environment = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
        process = subprocess.Popen(
            [str(folder / executable), address],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, **(variables or {})},
        )
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port.isdigit(), f"the plugin's first line is its port; got {port!r}"
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_UNLIMITED)
        provider = cls(process, provider_pb2_grpc.ResourceProviderStub(channel), engine, server, channel)
        provider.configure(config)
        return provider

    def close(self) -> None:
        """Kills the plugin, as the engine does."""
        self._channel.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self._engine_server.stop(None)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def configure(self, config: Json | None = None) -> Json:
        """The plugin's answer to `Configure`."""
        return _call(
            self.stub.Configure,
            provider_pb2.ConfigureRequest(
                acceptSecrets=True,
                acceptResources=True,
                sends_old_inputs=True,
                sends_old_inputs_to_delete=True,
                args=struct(config or {}),
            ),
        )

    def schema(self) -> Json:
        """The provider's schema."""
        return json.loads(self.stub.GetSchema(provider_pb2.GetSchemaRequest()).schema)

    def check(self, kind: str, inputs: Json) -> tuple[Json, list[Json]]:
        """The checked inputs, and the failures."""
        request = provider_pb2.CheckRequest(urn=urn(kind), olds=struct({}), news=struct(inputs))
        answer = _call(self.stub.Check, request)
        return answer["inputs"], answer.get("failures", [])

    def diff(self, kind: str, old: Json, new: Json, ignore: tuple[str, ...] = ()) -> Json:
        """The plugin's answer about the change from one set of inputs to another."""
        request = provider_pb2.DiffRequest(
            id="id",
            urn=urn(kind),
            olds=struct({**old, "stdout": "", "stderr": ""}),
            news=struct(new),
            old_inputs=struct(old),
            ignoreChanges=ignore,
        )
        return _call(self.stub.Diff, request)

    def create(self, kind: str, inputs: Json, *, preview: bool = False, timeout: float = 0, name: str = "x") -> Created:
        """Creates a resource. `timeout` is that of the resource's `customTimeouts`, in seconds."""
        request = provider_pb2.CreateRequest(
            urn=urn(kind, name), properties=struct(inputs), preview=preview, timeout=timeout
        )
        answer = _call(self.stub.Create, request)
        return Created(answer.get("id", ""), answer["properties"])

    def update(self, kind: str, old: Json, new: Json, *, preview: bool = False, identifier: str = "id") -> Json:
        """Updates a resource from its old state; its new state."""
        request = provider_pb2.UpdateRequest(
            id=identifier, urn=urn(kind), olds=struct(old), news=struct(new), preview=preview
        )
        return _call(self.stub.Update, request)["properties"]

    def delete(self, kind: str, state: Json, *, identifier: str = "id") -> None:
        """Deletes a resource."""
        request = provider_pb2.DeleteRequest(id=identifier, urn=urn(kind), properties=struct(state))
        _call(self.stub.Delete, request)

    def read(self, kind: str, state: Json, inputs: Json, *, identifier: str = "id") -> Json:
        """What a refresh finds."""
        request = provider_pb2.ReadRequest(
            id=identifier, urn=urn(kind), properties=struct(state), inputs=struct(inputs)
        )
        return _call(self.stub.Read, request)

    def check_config(self, config: Json) -> list[str]:
        """What is wrong with a configuration."""
        request = provider_pb2.CheckRequest(urn=urn("pulumi:providers:aws"), news=struct(config))
        return [failure["reason"] for failure in _call(self.stub.CheckConfig, request).get("failures", [])]

    def diff_config(self, old: Json, new: Json) -> Json:
        """The plugin's answer about the change of its configuration."""
        request = provider_pb2.DiffRequest(
            id="id", urn=urn("pulumi:providers:aws"), olds=struct(old), news=struct(new), old_inputs=struct(old)
        )
        return _call(self.stub.DiffConfig, request)

    def invoke(self, token: str, arguments: Json) -> Json:
        """Calls a function."""
        return _call(self.stub.Invoke, provider_pb2.InvokeRequest(tok=token, args=struct(arguments)))

    def cancel(self) -> None:
        """Signals cancellation, as the engine does on the first interrupt."""
        _call(self.stub.Cancel, empty_pb2.Empty())

    def in_background(self, work: Callable[[], T]) -> Future[T]:
        """Does `work` beside the test."""
        return self._pool.submit(work)

    @property
    def lines(self) -> list[LogLine]:
        """What was logged about resources since the last `forget`, what the plugin says of itself left out."""
        return [line for line in self._engine.lines if line.urn]

    @property
    def messages(self) -> list[str]:
        """The texts of `lines`."""
        return [line.message for line in self.lines]

    @property
    def everything_logged(self) -> str:
        """All messages as one text."""
        return "\n".join(line.message for line in self._engine.lines)

    def forget(self) -> None:
        """Empties the log."""
        self._engine.lines.clear()


def urn(kind: str, name: str = "x") -> str:
    """A resource's URN."""
    return f"urn:pulumi:stack::project::{kind}::{name}"


def struct(values: Json) -> struct_pb2.Struct:
    """Properties as the engine sends them."""
    message = struct_pb2.Struct()
    message.update(values)
    return message


def all_at_once(count: int, work: Callable[[int], T]) -> list[T | Exception]:
    """Runs `work` in that many threads, started together; each result, or what it raised."""
    barrier = threading.Barrier(count)

    def one(index: int) -> T | Exception:
        barrier.wait()
        try:
            return work(index)
        except CallError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def _call(method: Callable[..., Any], request: object) -> Json:
    try:
        return MessageToDict(method(request))
    except grpc.RpcError as error:
        raise CallError(cast("grpc.Call", error)) from None
