"""What `command:local:Command` and the function `command:local:run` do on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contract.command_harness import LOCAL, UNKNOWN, CallError, Provider, eventually
from tests.contract.conftest import StartProvider


def test_a_command_runs_in_a_shell_and_its_output_is_stored_and_logged(provider: Provider) -> None:
    state = provider.create(LOCAL, {"create": "echo out; echo err >&2"}).state
    assert (state["stdout"], state["stderr"]) == ("out", "err")
    assert sorted(provider.messages) == ["err", "out"]


def test_another_interpreter_gets_the_command_as_its_last_argument(provider: Provider) -> None:
    inputs = {"create": "import sys; print(sys.argv)", "interpreter": ["python3", "-c"]}
    assert provider.create(LOCAL, inputs).state["stdout"] == "['-c']"


def test_folder_environment_and_input_are_the_commands_own(provider: Provider, tmp_path: Path) -> None:
    inputs = {
        "create": 'pwd; echo "$FOO"; cat',
        "dir": str(tmp_path),
        "environment": {"FOO": "bar"},
        "stdin": "in",
    }
    assert provider.create(LOCAL, inputs).state["stdout"] == f"{tmp_path}\nbar\nin"


def test_the_environment_of_the_plugin_is_passed_on(start_provider: StartProvider) -> None:
    assert start_provider(CANARY="alive").create(LOCAL, {"create": "echo $CANARY"}).state["stdout"] == "alive"


def test_a_command_may_leave_its_input_unread(provider: Provider) -> None:
    inputs = {"create": "true", "stdin": "x" * 1_000_000}
    assert provider.create(LOCAL, inputs).state["stdout"] == ""


def test_previous_output_is_in_the_environment_unless_switched_off(provider: Provider) -> None:
    new = {"create": "echo $PULUMI_COMMAND_STDOUT $PULUMI_COMMAND_STDERR"}
    old = {**new, "stdout": "out", "stderr": "err"}
    assert provider.update(LOCAL, old, new)["stdout"] == "out err"
    assert provider.update(LOCAL, old, {**new, "addPreviousOutputInEnv": False})["stdout"] == ""


def test_delete_runs_delete_with_the_previous_output(provider: Provider, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = f'echo "$PULUMI_COMMAND_STDOUT" > "{mark}"'
    provider.delete(LOCAL, {"delete": command, "stdout": "out", "stderr": ""})
    assert mark.read_text() == "out\n"


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"create": "echo why >&2; exit 3"}, 'exit status 3: running "echo why >&2; exit 3":\nwhy'),
        ({"create": "kill -9 $$"}, "signal: killed"),
        ({"create": "x", "dir": "/nowhere"}, "chdir /nowhere: no such file or directory"),
        ({"create": "x", "interpreter": ["nowhere-x"]}, 'exec: "nowhere-x": executable file not found in $PATH'),
        ({"create": "x", "interpreter": ["/nowhere/x"]}, "fork/exec /nowhere/x: no such file or directory"),
    ],
)
def test_a_failure_says_why(provider: Provider, inputs: dict[str, object], reason: str) -> None:
    with pytest.raises(CallError) as failure:
        provider.create(LOCAL, inputs)
    assert failure.value.message.startswith(reason)


def test_cancelling_kills_the_command(start_provider: StartProvider, tmp_path: Path) -> None:
    provider, pipe = start_provider(), tmp_path / "pipe"
    os.mkfifo(pipe)
    running = provider.in_background(lambda: provider.create(LOCAL, {"create": f"echo begun; exec cat '{pipe}'"}))
    eventually(lambda: provider.messages == ["begun"] or None, "the command's beginning")
    provider.cancel()
    with pytest.raises(CallError, match="signal: killed"):
        running.result(timeout=10)
    with pytest.raises(CallError, match="context canceled"):
        provider.create(LOCAL, {"create": "true"})


def test_a_limit_on_the_resource_kills_the_command(provider: Provider, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(CallError, match="signal: killed"):
        provider.create(LOCAL, {"create": f"exec cat '{pipe}'"}, timeout=1)


@pytest.mark.parametrize(
    ("globs", "found"),
    [
        (["assets/**", "src/**.js", "!**secret.*"], ["assets/logos/logo.svg", "src/index.js"]),
        (["*"], ["top"]),
        (["src/*.js"], ["src/index.js", "src/secret.js"]),
        (["!**", "src/{index,other}.js"], ["src/index.js"]),
        (["*/s[a-f]cret.??"], ["src/secret.js"]),
        ([], []),
    ],
)
def test_globs_choose_the_assets(provider: Provider, tmp_path: Path, globs: list[str], found: list[str]) -> None:
    for name in ("assets/logos/logo.svg", "src/index.js", "src/secret.js", "top"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    inputs = {"create": "true", "dir": str(tmp_path), "assetPaths": globs, "archivePaths": globs}
    state = provider.create(LOCAL, inputs).state
    assert sorted(state["assets"]) == found
    assert sorted(state["archive"]["assets"]) == found
    assert all(state["assets"][name]["path"] == str(tmp_path / name) for name in found)


def test_assets_and_archives_carry_their_hashes(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("svg")
    inputs = {"create": "true", "dir": str(tmp_path), "assetPaths": ["a"], "archivePaths": ["a"]}
    state = provider.create(LOCAL, inputs).state
    assert state["assets"]["a"]["hash"].startswith("acdb1373d1761939")
    assert state["archive"]["hash"].startswith("82c7cf3bd2c4364e")


def test_a_function_call_runs_the_command_and_returns_its_output(provider: Provider) -> None:
    arguments = {"command": "echo $FOO; cat", "environment": {"FOO": "bar"}, "stdin": "in"}
    assert provider.invoke("command:local:run", arguments)["return"] == {
        **arguments,
        "stdout": "bar\nin",
        "stderr": "",
    }


def test_a_failed_function_call_says_why(provider: Provider) -> None:
    with pytest.raises(CallError, match="exit status 3"):
        provider.invoke("command:local:run", {"command": "exit 3"})
    with pytest.raises(CallError, match="'local:nonsense' not found"):
        provider.invoke("command:local:nonsense", {})


def test_a_preview_runs_nothing(provider: Provider, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    state = provider.create(LOCAL, {"create": f"touch '{mark}'"}, preview=True).state
    assert state["stdout"] == UNKNOWN
    assert not mark.exists()
