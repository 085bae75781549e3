"""What a command resource does when it is checked, previewed, created, changed, refreshed and deleted."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
import pytest

from tests.contract.command_harness import (
    COPY,
    LOCAL,
    REMOTE,
    UNKNOWN,
    CallError,
    Json,
    Provider,
    all_at_once,
    file_asset,
    is_secret,
    secret,
)
from tests.contract.command_sshd import Sshd

CONNECTION = secret({"host": "203.0.113.1", "user": "root", "port": 22, "dialErrorLimit": 10, "perDialTimeout": 15})


def test_it_understands_secrets_previews_and_outputs(provider: Provider) -> None:
    assert provider.configure() == {
        "acceptSecrets": True,
        "supportsPreview": True,
        "acceptResources": True,
        "acceptOutputs": True,
    }


def test_check_fills_in_the_defaults_of_a_connection_and_its_proxy(provider: Provider) -> None:
    inputs, failures = provider.check(REMOTE, {"connection": {"host": "h", "proxy": {"host": "b"}}})
    defaults = {"user": "root", "port": 22, "dialErrorLimit": 10, "perDialTimeout": 15}
    assert not failures
    assert inputs["connection"]["value"] == {"host": "h", **defaults, "proxy": {"host": "b", **defaults}}


def test_check_makes_the_connection_and_its_keys_secret(provider: Provider) -> None:
    inputs, _ = provider.check(REMOTE, {"connection": {"host": "h", "privateKey": "k", "password": "p"}})
    assert is_secret(inputs["connection"])
    assert is_secret(inputs["connection"]["value"]["privateKey"])
    assert is_secret(inputs["connection"]["value"]["password"])


def test_check_leaves_a_connection_of_unknown_content_unknown(provider: Provider) -> None:
    inputs, failures = provider.check(REMOTE, {"connection": {"host": UNKNOWN}, "create": UNKNOWN})
    assert not failures
    assert inputs["create"] == UNKNOWN
    assert inputs["connection"]["value"]["host"] == UNKNOWN


@pytest.mark.parametrize(
    ("inputs", "named", "reason"),
    [
        ({"create": "x"}, "connection", "Missing required field 'connection'"),
        ({"connection": {"host": "h"}, "bogus": 1}, "bogus", "Unrecognized field 'bogus'"),
        ({"connection": {"host": "h"}, "create": 1}, "create", "must be a 'string'"),
        ({"connection": {"host": "h"}, "environment": {"A": 1}}, "environment[A] value", "must be a 'string'"),
        ({"connection": {"hst": "h"}}, "connection", "Missing required field 'host'"),
        ({"connection": {"host": "h", "proxy": {}}}, "connection", "Missing required field 'host'"),
        ({"connection": {"host": "h", "port": "x"}}, "connection", "must be a 'float64'"),
    ],
)
def test_check_names_what_is_wrong(provider: Provider, inputs: Json, named: str, reason: str) -> None:
    _, failures = provider.check(REMOTE, inputs)
    assert [failure["property"] for failure in failures] == [named]
    assert reason in failures[0]["reason"]


def test_an_unknown_resource_type_is_refused(provider: Provider) -> None:
    with pytest.raises(CallError) as failure:
        provider.check("command:remote:Nonsense", {})
    assert failure.value.code is grpc.StatusCode.NOT_FOUND


def test_unchanged_inputs_are_no_change(provider: Provider) -> None:
    inputs = {"connection": CONNECTION, "create": "x", "triggers": [1, {"a": [2]}], "environment": {"A": "b"}}
    assert provider.diff(REMOTE, inputs, inputs) == {"changes": "DIFF_NONE", "hasDetailedDiff": True}


def test_every_changed_input_is_an_update_and_is_listed(provider: Provider) -> None:
    old = {"connection": CONNECTION, "create": "x", "environment": {"A": "1", "b-c": "2"}, "stdin": "s"}
    new = {
        "connection": secret({"host": "203.0.113.2"}),
        "create": "y",
        "delete": "z",
        "environment": {"A": "2", "b-c": "3"},
    }
    answer = provider.diff(REMOTE, old, new)
    assert answer["changes"] == "DIFF_SOME"
    assert sorted(answer["diffs"]) == ["connection", "create", "delete", "environment", "stdin"]
    assert "replaces" not in answer
    assert {path: change.get("kind", "ADD") for path, change in answer["detailedDiff"].items()} == {
        "connection": "UPDATE",
        "create": "UPDATE",
        "delete": "ADD",
        "environment.A": "UPDATE",
        'environment["b-c"]': "UPDATE",
        "stdin": "DELETE",
    }


def test_an_input_that_becomes_secret_is_a_change(provider: Provider) -> None:
    answer = provider.diff(
        REMOTE, {"connection": CONNECTION, "create": "x"}, {"connection": CONNECTION, "create": secret("x")}
    )
    assert answer["diffs"] == ["create"]


def test_an_ignored_change_is_no_change(provider: Provider) -> None:
    old = {"connection": CONNECTION, "create": "x"}
    answer = provider.diff(REMOTE, old, {**old, "create": "y"}, ignore=("create",))
    assert answer["changes"] == "DIFF_NONE"


def test_adding_or_removing_triggers_replaces(provider: Provider) -> None:
    without, with_ = {"connection": CONNECTION}, {"connection": CONNECTION, "triggers": [1]}
    assert provider.diff(REMOTE, without, with_)["replaces"] == ["triggers"]
    assert provider.diff(REMOTE, with_, without)["replaces"] == ["triggers"]


def test_a_changed_trigger_is_named_by_its_index_for_the_sdk_to_replace_on(provider: Provider) -> None:
    old, new = ({"connection": CONNECTION, "triggers": triggers} for triggers in ([1, 2], [1, 3, 4]))
    answer = provider.diff(REMOTE, old, new)
    assert sorted(answer["detailedDiff"]) == ["triggers[1]", "triggers[2]"]
    assert "replaces" not in answer


def test_the_preview_of_a_creation_connects_to_nothing_and_knows_no_outputs(provider: Provider) -> None:
    inputs = {"connection": CONNECTION, "create": "x", "environment": {"A": UNKNOWN}}
    state = provider.create(REMOTE, inputs, preview=True).state
    assert state == {**inputs, "stdout": UNKNOWN, "stderr": UNKNOWN}


def test_the_preview_of_an_update_keeps_outputs_only_while_nothing_known_changed(provider: Provider) -> None:
    inputs = {"connection": CONNECTION, "create": "x"}
    state = {**inputs, "stdout": "before", "stderr": ""}
    assert provider.update(REMOTE, state, {**inputs, "create": "y"}, preview=True)["stdout"] == UNKNOWN
    assert provider.update(REMOTE, state, {**inputs, "create": UNKNOWN}, preview=True)["stdout"] == UNKNOWN
    assert provider.update(REMOTE, state, {**inputs, "delete": "z"}, preview=True)["stdout"] == "before"


def test_create_runs_create_and_stores_its_output_without_the_last_line_end(provider: Provider, sshd: Sshd) -> None:
    created = provider.create(REMOTE, sshd.command("printf 'a\\nb\\n\\n'; echo e >&2"), name="web")
    assert created.state["stdout"] == "a\nb\n"
    assert created.state["stderr"] == "e"
    assert created.id.startswith("web")
    assert len(created.id) == len("web") + 8


def test_without_create_nothing_runs_and_nothing_is_connected_to(provider: Provider) -> None:
    state = provider.create(REMOTE, {"connection": CONNECTION, "delete": "x"}).state
    assert (state["stdout"], state["stderr"]) == ("", "")


def test_update_runs_update_else_create_else_nothing(provider: Provider, sshd: Sshd) -> None:
    old = {**sshd.command("echo first"), "stdout": "first", "stderr": "old"}
    quiet: Json = {"addPreviousOutputInEnv": False}
    assert provider.update(REMOTE, old, sshd.command("echo c", update="echo u", **quiet))["stdout"] == "u"
    assert provider.update(REMOTE, old, sshd.command("echo c", **quiet))["stdout"] == "c"
    unchanged = provider.update(REMOTE, old, {"connection": CONNECTION, "delete": "x"})
    assert (unchanged["stdout"], unchanged["stderr"]) == ("first", "old")


def test_a_failed_update_says_so(provider: Provider, sshd: Sshd) -> None:
    old = {**sshd.command("echo first"), "stdout": "first", "stderr": ""}
    with pytest.raises(CallError, match="Process exited with status 4"):
        provider.update(REMOTE, old, sshd.command(update="exit 4"))


def test_delete_runs_delete_with_what_the_state_holds(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    state = sshd.command("true", delete=f"cat > '{mark}'", stdin="from the state", stdout="", stderr="")
    provider.delete(REMOTE, state)
    assert mark.read_text() == "from the state"


def test_without_delete_nothing_is_connected_to(provider: Provider) -> None:
    provider.delete(REMOTE, {"connection": CONNECTION, "create": "x", "stdout": "", "stderr": ""})


def test_a_failed_delete_says_so(provider: Provider, sshd: Sshd) -> None:
    state = sshd.command("true", delete="echo why >&2; exit 5", stdout="", stderr="")
    with pytest.raises(CallError, match=r"(?s)status 5.*why"):
        provider.delete(REMOTE, state)


def test_a_refresh_returns_the_state_as_it_is(provider: Provider) -> None:
    inputs = {"connection": CONNECTION, "create": "x"}
    state = {**inputs, "stdout": "so", "stderr": ""}
    assert provider.read(REMOTE, state, inputs) == {"id": "id", "properties": state, "inputs": inputs}


@pytest.mark.parametrize("kind", [REMOTE, LOCAL])
def test_a_state_that_lacks_its_outputs_is_refused(provider: Provider, kind: str) -> None:
    with pytest.raises(CallError, match="Missing required field 'stdout'"):
        provider.delete(kind, {"connection": CONNECTION} if kind == REMOTE else {})


def test_a_thousand_unchanged_resources_are_checked_and_compared_in_seconds(provider: Provider) -> None:
    inputs, _ = provider.check(REMOTE, {"connection": {"host": "h"}, "create": "x", "stdin": "s" * 4096})

    def unchanged(_: int) -> None:
        for _each in range(125):
            provider.check(REMOTE, inputs)
            assert provider.diff(REMOTE, inputs, inputs)["changes"] == "DIFF_NONE"

    begun = time.monotonic()
    assert all_at_once(8, unchanged) == [None] * 8
    assert time.monotonic() - begun < 15


def test_it_answers_within_two_seconds_of_its_start(command_plugin: Path) -> None:
    begun = time.monotonic()
    provider = Provider.start(command_plugin)
    took = time.monotonic() - begun
    provider.close()
    assert took < 2


def test_the_preview_of_a_copy_connects_to_nothing(provider: Provider) -> None:
    inputs = {"connection": CONNECTION, "source": file_asset("/nowhere"), "remotePath": "/x"}
    assert provider.create(COPY, inputs, preview=True).id == ""
