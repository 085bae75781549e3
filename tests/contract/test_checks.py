"""The order of checks under Pulumi's own engine: nothing is changed on any host before all are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract.command_sshd import Sshd
from tests.contract.command_stack import Stack, stack_of_components

pytestmark = pytest.mark.slow

_PROGRAM = Path(__file__).parent / "programs" / "checked_hosts.py"


class World:
    """Hosts that are all one, and the journal of what is done on them."""

    def __init__(self, stack: Stack, server: Sshd) -> None:
        self.stack, self.server = stack, server
        self.journal = stack.folder / "journal"
        self.journal.touch()

    def write(self, settings: str = "one", machines: Mapping[str, str] | None = None, **checks: str) -> None:
        """Host name to the shell of its check; in it, `note` notes a word, and `until_noted` waits for one.

        Args:
            settings: what all hosts are equipped with.
            machines: host name to the machine that it is now.
            checks: host name to shell.
        """
        given = self.server.connection()
        connection = {
            "host": given["host"],
            "port": given["port"],
            "user": given["user"],
            "host_key": given["hostKey"],
            "private_key": given["privateKey"],
            "dial_error_limit": 0,
        }
        shell = (
            f"note() {{ echo $1 >> {self.journal}; }}; "
            f"noted() {{ grep -q $1 {self.journal}; }}; "
            "until_noted() { until noted $1; do sleep 0.1; done; }; "
        )
        hosts: dict[str, Any] = {
            name: {
                "connection": connection,
                "check": f"{shell} note {name}-check; {check}",
                "settings": settings,
                "identity": (machines or {}).get(name, name),
                "journal": str(self.journal),
            }
            for name, check in checks.items()
        }
        (self.stack.folder / "hosts.json").write_text(json.dumps(hosts))

    def up(self, *options: str, fails: bool = False) -> str:
        return self.stack.pulumi("up", "--yes", "--skip-preview", *options, fails=fails)

    @property
    def told(self) -> list[str]:
        """What the hosts have noted, in that order."""
        return self.journal.read_text().split()

    @property
    def equipped(self) -> list[str]:
        return sorted(word.removesuffix("-prepare") for word in self.told if word.endswith("-prepare"))


@pytest.fixture
def world(command_plugin: Path, bin_dirs: list[Path], tmp_path: Path, sshd: Sshd) -> World:
    return World(stack_of_components(_PROGRAM, command_plugin, bin_dirs, tmp_path), sshd)


# Fails if another host is changed meanwhile, for which there is time enough.
LOOKS_OUT = "for _ in $(seq 10); do if grep -q prepare {journal}; then echo too early >&2; exit 1; fi; sleep 0.1; done"


def test_a_host_waits_for_the_checks_of_all_others_and_a_preview_for_none(world: World) -> None:
    looks_out = LOOKS_OUT.format(journal=world.journal)
    world.write(one="true", two=looks_out, three="true")
    world.up()
    assert world.equipped == ["one", "three", "two"]
    # One more, and something to change on the others.
    world.journal.write_text("")
    world.write("two", one="true", two=looks_out, three="true", four=looks_out)
    assert world.stack.preview() == {"same": 4, "update": 3, "create": 2}
    world.up()
    assert world.told[0] == "four-check"
    assert world.equipped == ["four", "one", "three", "two"]
    # That all wait for all is not in the state.
    for resource in json.loads(world.stack.exported())["deployment"]["resources"]:
        assert not resource.get("dependencies"), resource["urn"]


def test_all_hosts_are_checked_and_all_faults_are_told_though_more_than_pulumi_works_on_at_once(world: World) -> None:
    fails = "echo {0}-has-a-fault >&2; note failed; exit 1"
    world.write(one=fails.format("one"), two="until_noted failed", three="true", four=fails.format("four"), five="true")
    told = world.up("--parallel", "3", fails=True)
    assert {word for word in world.told if word.endswith("-check")} == {
        f"{name}-check" for name in ("one", "two", "three", "four", "five")
    }
    assert "one-has-a-fault" in told
    assert "four-has-a-fault" in told
    assert "Traceback" not in told
    assert world.equipped == []
    # Those that have passed need not be made again.
    world.journal.write_text("")
    world.write(one="true", two="until_noted failed", three="true", four="true", five="true")
    world.up("--parallel", "2")
    assert sorted(word for word in world.told if word.endswith("-check")) == ["four-check", "one-check"]
    assert world.equipped == ["five", "four", "one", "three", "two"]


@pytest.mark.long
def test_a_machine_that_another_takes_the_place_of_is_not_cleaned_before_all_are_checked(world: World) -> None:
    world.write(one="true", two="true")
    world.up()
    world.journal.write_text("")
    world.write(machines={"one": "another"}, one="true", two="exit 1")
    world.up(fails=True)
    assert sorted(world.told) == ["one-check", "two-check"]
    world.write(machines={"one": "another"}, one="true", two="true")
    world.up()
    # The check of `one` has passed, and that of `two` is what it was when it passed.
    assert world.told[2:] == ["one-down", "one-prepare"]
    assert world.stack.preview() == {"same": 5}


@pytest.mark.long
def test_where_as_many_fail_as_pulumi_works_on_at_once_the_others_are_named(world: World) -> None:
    world.write(**dict.fromkeys(("one", "two", "three"), "exit 1"))
    told = world.up("--parallel", "2", fails=True)
    checked = {word.removesuffix("-check") for word in world.told}
    (missed,) = {"one", "two", "three"} - checked
    assert f"not checked yet: {missed}\n" in told, told


@pytest.mark.long
def test_pulumi_may_go_on_after_an_error_but_changes_no_host(world: World) -> None:
    world.write(**dict.fromkeys(("one", "two", "three"), "exit 1"), four="true")
    told = world.up("--parallel", "2", "--continue-on-error", fails=True)
    assert sorted(world.told) == ["four-check", "one-check", "three-check", "two-check"]
    assert "not passed by one, three, two, so nothing was changed on any host" in told, told
