"""`command:remote:Command`: one command on another host, by SSH."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import asyncssh

from lab.plugin_kit.operation import ERROR, WARNING, FailedError, Operation
from lab.plugin_kit.values import Value, object_of, text_of

from .connection import connection
from .dialing import dial, rejected
from .go_text import quoted
from .output_log import Output, line_too_long
from .remote_shell import CommandChannel, Shell

_open_connections: list[asyncssh.SSHClientConnection] = []
"""Connections of commands: kept until the plugin ends, as the original keeps them."""


async def run(
    operation: Operation, command: str, inputs: Mapping[str, Value], previous: Mapping[str, str]
) -> dict[str, str]:
    """Runs `command` and returns its `stdout` and `stderr`.

    `previous` holds the outputs of the run before, by the names of their environment variables. Neither `Cancel` nor
    a resource's time limit ends a command that runs; they end dialling. That is the original's way.
    """
    client = await dial(operation, connection(object_of(inputs, "connection")))
    _open_connections.append(client)
    output = Output(operation, text_of(inputs, "logging"))
    shell = Shell(output)
    channel = CommandChannel.on(client)
    try:
        await channel.open(shell)
    except asyncssh.ChannelOpenError as error:
        raise rejected(error) from error
    try:
        await _set_environment(operation, channel, inputs, previous)
        failure = await _execute(channel, shell, output, command, text_of(inputs, "stdin") or "")
    finally:
        channel.close()
        await output.close()
    if failure is not None:
        raise FailedError(f"{failure}: running {quoted(command)}:\n{output.combined}")
    return {"stdout": output.result("stdout"), "stderr": output.result("stderr")}


async def _set_environment(
    operation: Operation, channel: CommandChannel, inputs: Mapping[str, Value], previous: Mapping[str, str]
) -> None:
    for name, value in object_of(inputs, "environment").items():
        if not await channel.set_environment(name, str(value)):
            await operation.say(ERROR, _refused(name))
            raise FailedError(f"could not set environment variable {quoted(name)}: ssh: setenv failed")
    if inputs.get("addPreviousOutputInEnv") is not False:
        for name, value in previous.items():
            if value and not await channel.set_environment(name, value):
                await operation.say(WARNING, _refused(name))


def _refused(name: str) -> str:
    return (
        f"Unable to set '{name}': the SSH server refused the variable. It takes those that its AcceptEnv names."
        " Otherwise set variables in the command itself: NAME=value command."
    )


async def _execute(channel: CommandChannel, shell: Shell, output: Output, command: str, stdin: str) -> str | None:
    """How the command ended: `None` for success, else why not."""
    if not await channel.execute(command):
        return f"ssh: command {command} failed"
    channel.send(stdin.encode())
    await asyncio.wait((shell.ended, output.overflow), return_when=asyncio.FIRST_COMPLETED)
    if output.overflow.done():
        raise line_too_long()
    return shell.ended.result() or ("EOF" if channel.unsent else None)
