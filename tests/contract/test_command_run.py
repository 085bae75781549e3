"""How a remote command runs: input, environment, output, logging, errors, cancellation, its end."""

from __future__ import annotations

import os
import signal
from concurrent.futures import TimeoutError as StillRunningError
from pathlib import Path

import pytest

from tests.contract.command_harness import REMOTE, CallError, Provider, eventually, secret
from tests.contract.command_sshd import Sshd
from tests.contract.conftest import StartProvider, StartSshd

INFO, WARNING, ERROR = 1, 2, 3
MEBIBYTE = 1024 * 1024
UNTIL_NOBODY_LISTENS = "while echo alive; do sleep 0.2; done"
"""A command that ends by itself soon after its session has."""


def test_stdin_arrives_as_it_is(provider: Provider, sshd: Sshd) -> None:
    text = "first line\n\ttwo: $HOME `x` 'y' \"z\" é\nno line end"
    assert provider.create(REMOTE, sshd.command("cat", stdin=text)).state["stdout"] == text


def test_without_stdin_the_command_reads_an_empty_one(provider: Provider, sshd: Sshd) -> None:
    assert provider.create(REMOTE, sshd.command("wc -c")).state["stdout"].strip() == "0"


def test_a_large_stdin_arrives_whole(provider: Provider, sshd: Sshd) -> None:
    inputs = sshd.command("wc -c", stdin="x" * (8 * MEBIBYTE))
    assert provider.create(REMOTE, inputs).state["stdout"].strip() == str(8 * MEBIBYTE)


def test_a_command_that_leaves_a_large_stdin_unread_fails(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match='EOF: running "true"'):
        provider.create(REMOTE, sshd.command("true", stdin="x" * (8 * MEBIBYTE)))


def test_environment_that_the_server_refuses_fails_the_command_before_it_runs(
    provider: Provider, sshd: Sshd, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(CallError, match='could not set environment variable "FOO"'):
        provider.create(REMOTE, sshd.command(f"touch '{mark}'", environment={"FOO": "bar"}))
    assert not mark.exists()
    (line,) = provider.lines
    assert line.severity == ERROR
    assert not line.passing
    assert line.message.startswith("Unable to set 'FOO'")
    assert "AcceptEnv" in line.message


def test_environment_that_the_server_accepts_reaches_the_command(provider: Provider, start_sshd: StartSshd) -> None:
    server = start_sshd("AcceptEnv FOO BAZ")
    inputs = server.command('echo "$FOO,$BAZ"', environment={"FOO": "a b", "BAZ": "$HOME"})
    assert provider.create(REMOTE, inputs).state["stdout"] == "a b,$HOME"


def test_previous_output_that_a_stock_server_refuses_is_a_warning_and_the_command_runs(
    provider: Provider, sshd: Sshd
) -> None:
    old = {**sshd.command("true"), "stdout": "before", "stderr": "complaint"}
    state = provider.update(REMOTE, old, sshd.command('echo "[$PULUMI_COMMAND_STDOUT]"'))
    assert state["stdout"] == "[]"
    warnings = [line.message for line in provider.lines if line.severity == WARNING and not line.passing]
    assert [warning.split("'")[1] for warning in warnings] == [
        "PULUMI_COMMAND_STDOUT",
        "PULUMI_COMMAND_STDERR",
    ]


def test_a_delete_on_a_stock_server_runs_in_spite_of_refused_previous_output(
    provider: Provider, sshd: Sshd, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    state = sshd.command("true", delete=f"touch '{mark}'", stdout="before", stderr="")
    provider.delete(REMOTE, state)
    assert mark.exists()
    assert provider.messages[0].startswith("Unable to set 'PULUMI_COMMAND_STDOUT'")


def test_previous_output_switched_off_is_not_sent(provider: Provider, start_sshd: StartSshd) -> None:
    server = start_sshd("AcceptEnv PULUMI_*")
    old = {**server.command("true"), "stdout": "before", "stderr": ""}
    new = server.command('echo "[$PULUMI_COMMAND_STDOUT]"', addPreviousOutputInEnv=False)
    assert provider.update(REMOTE, old, new)["stdout"] == "[]"
    assert provider.messages == ["[]"]


def test_previous_output_reaches_a_server_that_accepts_it(provider: Provider, start_sshd: StartSshd) -> None:
    server = start_sshd("AcceptEnv PULUMI_*")
    old = {**server.command("true"), "stdout": "out", "stderr": "err"}
    new = server.command('echo "$PULUMI_COMMAND_STDOUT $PULUMI_COMMAND_STDERR"')
    assert provider.update(REMOTE, old, new)["stdout"] == "out err"


def test_a_failure_names_the_exit_status_the_command_and_both_streams(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError) as failure:
        provider.create(REMOTE, sshd.command('echo "out"; echo err >&2; exit 7'))
    first, *output = failure.value.message.splitlines()
    assert first == r'Process exited with status 7: running "echo \"out\"; echo err >&2; exit 7":'
    assert sorted(output) == ["err", "out"]


def test_a_command_ended_by_a_signal_says_which(provider: Provider, sshd: Sshd) -> None:
    with pytest.raises(CallError, match="Process exited with status 143 from signal TERM"):
        provider.create(REMOTE, sshd.command("kill -TERM $$"))


def test_a_connection_that_breaks_fails_the_command(provider: Provider, sshd: Sshd) -> None:
    running = provider.in_background(
        lambda: provider.create(REMOTE, sshd.command(f"echo parent $PPID; {UNTIL_NOBODY_LISTENS}"))
    )
    line = eventually(lambda: next(iter(provider.messages), None), "the command's first line")
    os.kill(int(line.split()[1]), signal.SIGKILL)
    with pytest.raises(CallError, match="remote command exited without exit status or exit signal"):
        running.result(timeout=10)


def test_output_is_logged_line_by_line_as_it_comes(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = provider.in_background(
        lambda: provider.create(REMOTE, sshd.command(f"echo early; cat '{pipe}'; printf 'cr\\r\\n\\nend'"))
    )
    eventually(lambda: provider.messages == ["early"] or None, "the first line, while the command runs")
    pipe.write_text("late\n")
    assert running.result(timeout=10).state["stdout"] == "early\nlate\ncr\r\n\nend"
    assert provider.messages == ["early", "late", "cr", "", "end"]
    assert {(line.severity, line.passing) for line in provider.lines} == {(INFO, True)}


@pytest.mark.parametrize(
    ("logging", "logged"),
    [
        (None, ["err", "out"]),
        ("stdoutAndStderr", ["err", "out"]),
        ("stdout", ["out"]),
        ("stderr", ["err"]),
        ("none", []),
    ],
)
def test_logging_says_which_streams_are_logged_and_both_are_stored(
    provider: Provider, sshd: Sshd, logging: str | None, logged: list[str]
) -> None:
    inputs = {**sshd.command("echo out; echo err >&2"), **({"logging": logging} if logging else {})}
    state = provider.create(REMOTE, inputs).state
    assert (state["stdout"], state["stderr"]) == ("out", "err")
    assert sorted(provider.messages) == logged


def test_a_large_output_is_stored_whole(provider: Provider, sshd: Sshd) -> None:
    inputs = sshd.command("yes 0123456789abcde | head -c 8388608", logging="none")
    assert provider.create(REMOTE, inputs).state["stdout"] == ("0123456789abcde\n" * 524288)[:-1]


def test_many_lines_are_logged_in_order(provider: Provider, sshd: Sshd) -> None:
    provider.create(REMOTE, sshd.command("seq 3000"))
    assert provider.messages == [str(number) for number in range(1, 3001)]


def test_a_logged_line_of_64_kib_never_succeeds_and_a_shorter_one_does(
    start_provider: StartProvider, sshd: Sshd
) -> None:
    provider = start_provider()
    line = "head -c {} /dev/zero | tr '\\0' a; echo"
    short = provider.create(REMOTE, sshd.command(line.format(65535))).state["stdout"]
    assert len(short) == 65535
    unlogged = sshd.command(line.format(70000), logging="none")
    assert len(provider.create(REMOTE, unlogged).state["stdout"]) == 70000
    hanging = provider.in_background(lambda: provider.create(REMOTE, sshd.command(line.format(70000))))
    with pytest.raises((CallError, StillRunningError)):
        hanging.result(timeout=4)


def test_output_that_is_no_text_fails_the_command_after_it_ran(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(CallError, match="invalid UTF-8"):
        provider.create(REMOTE, sshd.command(f"touch '{mark}'; printf '\\377'"))
    assert mark.exists()


def test_a_daemon_with_redirected_streams_lets_the_command_end(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    daemon = f"setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > '{file}'; echo up"
    assert provider.create(REMOTE, sshd.command(daemon)).state["stdout"] == "up"
    os.kill(int(file.read_text()), signal.SIGTERM)


def test_a_daemon_that_keeps_a_stream_holds_the_command(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    running = provider.in_background(
        lambda: provider.create(REMOTE, sshd.command(f"sleep 600 & echo $! > '{file}'; echo up"))
    )
    eventually(lambda: provider.messages == ["up"] or None, "the command's output")
    with pytest.raises(StillRunningError):
        running.result(timeout=2)
    os.kill(int(file.read_text()), signal.SIGTERM)
    assert running.result(timeout=10).state["stdout"] == "up"


def test_cancelling_or_a_time_limit_lets_a_running_command_finish(
    start_provider: StartProvider, sshd: Sshd, tmp_path: Path
) -> None:
    provider = start_provider()
    provider.create(REMOTE, sshd.command("true"))  # whatever loads with the first dial must not use up the limit
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    limit = 4
    running = provider.in_background(
        lambda: provider.create(REMOTE, sshd.command(f"echo begun; cat '{pipe}'"), timeout=limit)
    )
    eventually(lambda: provider.messages == ["begun"] or None, "the command's beginning")
    provider.cancel()
    with pytest.raises(StillRunningError):
        running.result(timeout=limit + 1)
    pipe.write_text("finished\n")
    assert running.result(timeout=10).state["stdout"] == "begun\nfinished"


def test_the_session_ends_with_the_plugin(start_provider: StartProvider, start_sshd: StartSshd) -> None:
    provider, server = start_provider(), start_sshd()
    provider.in_background(lambda: provider.create(REMOTE, server.command(UNTIL_NOBODY_LISTENS)))
    eventually(lambda: provider.lines or None, "the command's output")
    provider.close()
    eventually(lambda: server.established() == 0 or None, "the end of the session")


def test_a_command_holds_no_secret_in_its_error_that_it_did_not_print(provider: Provider, sshd: Sshd) -> None:
    inputs = {**sshd.command(), "create": secret("cat >/dev/null; exit 3"), "stdin": secret("canary-stdin")}
    with pytest.raises(CallError) as failure:
        provider.create(REMOTE, inputs)
    private = sshd.keyring.client.private
    for text in (failure.value.message, provider.everything_logged):
        assert "canary-stdin" not in text
        assert private.splitlines()[1] not in text


def test_secret_inputs_come_back_secret_and_what_a_command_prints_does_not(provider: Provider, sshd: Sshd) -> None:
    inputs = {**sshd.command(), "create": secret("cat"), "stdin": secret("canary")}
    state = provider.create(REMOTE, inputs).state
    assert state["create"] == secret("cat")
    assert state["stdin"] == secret("canary")
    assert state["connection"] == inputs["connection"]
    assert state["stdout"] == "canary"
