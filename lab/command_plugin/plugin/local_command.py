"""`command:local:Command` and the function `command:local:run`: one command on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from lab.plugin_kit.operation import FailedError, Operation
from lab.plugin_kit.values import Properties, Value, object_of, text_of, texts_of

from .found_files import archive_of, assets_of
from .go_text import error_text, quoted
from .output_log import Output, Stream, line_too_long

_CHUNK = 32 * 1024
_SHELL = ["/bin/sh", "-c"]


async def run(
    operation: Operation, command: str, inputs: Mapping[str, Value], previous: Mapping[str, str]
) -> Properties:
    """Runs `command` and returns `stdout`, `stderr` and, where asked for, `assets` and `archive`.

    `previous` holds the outputs of the run before, by the names of their environment variables. A cancelled operation
    kills the command, but not what it started in turn.
    """
    arguments = [*(texts_of(inputs, "interpreter") or _SHELL), command]
    folder = Path(text_of(inputs, "dir") or Path.cwd())
    output = Output(operation, text_of(inputs, "logging"))
    try:
        failure = await _execute(
            operation,
            arguments,
            output,
            folder=folder,
            environment=_environment(inputs, previous),
            stdin=text_of(inputs, "stdin") or "",
        )
    finally:
        await output.close()
    if failure is not None:
        raise FailedError(f"{failure.message}: running {quoted(command)}:\n{output.combined}", failure.status)
    result: Properties = {"stdout": output.result("stdout"), "stderr": output.result("stderr")}
    globs = texts_of(inputs, "assetPaths")
    if globs is not None:
        result["assets"] = assets_of(folder, globs)
    globs = texts_of(inputs, "archivePaths")
    if globs is not None:
        result["archive"] = archive_of(assets_of(folder, globs))
    return result


async def _execute(
    operation: Operation,
    arguments: list[str],
    output: Output,
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: str,
) -> FailedError | None:
    if operation.cancellation.is_set():
        return operation.cancellation.failure
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return _not_started(arguments[0], folder, error)
    finished = asyncio.ensure_future(
        asyncio.gather(
            _read(process.stdout, "stdout", output),
            _read(process.stderr, "stderr", output),
            _write(process.stdin, stdin),
            process.wait(),
        )
    )
    cancelled = asyncio.ensure_future(operation.cancellation.wait())
    await asyncio.wait((finished, cancelled, output.overflow), return_when=asyncio.FIRST_COMPLETED)
    if not finished.done():
        if process.returncode is None:
            process.kill()
        if output.overflow.done():
            finished.cancel()
            raise line_too_long()
    cancelled.cancel()
    await finished
    return _failure(process.returncode or 0)


def _failure(status: int) -> FailedError | None:
    if status < 0:
        return FailedError(f"signal: {_signal_name(-status)}")
    return FailedError(f"exit status {status}") if status else None


def _signal_name(number: int) -> str:
    text = signal.strsignal(number) or f"signal {number}"
    return text[:1].lower() + text[1:]


def _not_started(program: str, folder: Path, error: OSError) -> FailedError:
    if not folder.is_dir():
        return FailedError(f"chdir {folder}: {error_text(error)}")
    if "/" not in program and shutil.which(program) is None:
        return FailedError(f"exec: {quoted(program)}: executable file not found in $PATH")
    return FailedError(f"fork/exec {program}: {error_text(error)}")


def _environment(inputs: Mapping[str, Value], previous: Mapping[str, str]) -> dict[str, str]:
    environment = dict(os.environ)
    environment |= {name: str(value) for name, value in object_of(inputs, "environment").items()}
    if inputs.get("addPreviousOutputInEnv") is not False:
        environment |= {name: value for name, value in previous.items() if value}
    return environment


async def _read(stream: asyncio.StreamReader | None, name: Stream, output: Output) -> None:
    while stream and (data := await stream.read(_CHUNK)):
        output.feed(name, data)


async def _write(stream: asyncio.StreamWriter | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text.encode())
        await stream.drain()
        stream.close()
        await stream.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the command ended, or closed its input, without reading all of it: its own affair
