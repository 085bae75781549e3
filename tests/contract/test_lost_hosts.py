"""The commands of a lost host under Pulumi's own engine: whoever says `lost: true` never waits for a login again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract.command_sshd import Sshd
from tests.contract.command_stack import Stack, stack_of_components
from tests.contract.conftest import StartSshd

pytestmark = pytest.mark.slow

_PROGRAM = Path(__file__).parent / "programs" / "lost_hosts.py"


@pytest.fixture
def stack(command_plugin: Path, bin_dirs: list[Path], tmp_path: Path) -> Stack:
    """An empty stack of the program above."""
    return stack_of_components(_PROGRAM, command_plugin, bin_dirs, tmp_path)


class World:
    """A head that stays and an edge that goes."""

    def __init__(self, stack: Stack, head: Sshd, edge: Sshd) -> None:
        self.stack, self.head, self.edge = stack, head, edge
        self.journal = stack.folder / "journal"

    def write(self, *, edge: bool = True, lost: bool = False, settings: str = "one", steps: tuple[str, ...]) -> None:
        hosts = {"head": self.entry(self.head, lost=False, settings=settings, steps=("prepare",))}
        if edge:
            entry = self.entry(self.edge, lost=lost, settings=settings, steps=steps)
            if lost:
                entry["connection"] = hosts["head"]["connection"]
            hosts["edge"] = entry
        (self.stack.folder / "hosts.json").write_text(json.dumps(hosts))

    def entry(self, server: Sshd, **more: Any) -> dict[str, Any]:
        given = server.connection()
        connection = {
            "host": given["host"],
            "port": given["port"],
            "user": given["user"],
            "host_key": given["hostKey"],
            "private_key": given["privateKey"],
            "dial_error_limit": 0,
        }
        endpoint = f"edge:{server.port}"
        return {
            "endpoint": endpoint,
            "identity": endpoint,
            "connection": connection,
            "journal": str(self.journal),
            **more,
        }

    @property
    def told(self) -> list[str]:
        """What the commands have noted, in any order."""
        return sorted(self.journal.read_text().split())

    @property
    def recorded(self) -> set[str]:
        """Names of the commands in the state."""
        state: Mapping[str, Any] = json.loads(self.stack.exported())["deployment"]
        return {each["urn"].rpartition("::")[2] for each in state["resources"] if "command:" in each["type"]}


@pytest.fixture
def world(stack: Stack, sshd: Sshd, start_sshd: StartSshd) -> World:
    """Both hosts are set up, the edge as far as its second step; then the edge is gone."""
    edge = start_sshd()
    world = World(stack, sshd, edge)
    world.write(steps=("prepare", "overlay"))
    stack.up()
    assert world.told == ["edge-overlay-up", "edge-prepare-up", "head-prepare-up"]
    edge.stop()
    return world


def test_without_it_a_host_that_is_gone_holds_everything_up(world: World) -> None:
    world.write(edge=False, steps=())
    assert "connection refused" in world.stack.up(fails=True)


def test_an_update_passes_without_the_host_whatever_else_has_changed(world: World) -> None:
    world.write(lost=True, settings="two", steps=("prepare", "overlay", "ray"))
    world.stack.up()
    # The head's own command ran anew; nothing ran for the edge, and its third step stands for itself.
    assert world.told == ["edge-overlay-up", "edge-prepare-up", "head-prepare-up", "head-prepare-up"]
    assert world.recorded == {"head-prepare", "edge-prepare", "edge-overlay", "edge-ray"}
    assert world.stack.preview() == {"same": 5}


@pytest.mark.parametrize("changed", [False, True])
def test_its_entry_can_then_be_deleted_without_a_login(world: World, changed: bool) -> None:
    world.write(lost=True, settings="two" if changed else "one", steps=("prepare", "overlay", "ray"))
    world.stack.up()
    logins = world.head.logins
    world.write(edge=False, settings="two" if changed else "one", steps=())
    world.stack.up()
    assert world.recorded == {"head-prepare"}
    assert world.head.logins == logins
    assert not [line for line in world.told if line.endswith("-down")]


@pytest.mark.long
def test_another_machine_takes_the_place_of_one_that_was_lost(world: World, start_sshd: StartSshd) -> None:
    world.write(lost=True, steps=("prepare", "overlay"))
    world.stack.up()
    world.edge = start_sshd()
    world.write(steps=("prepare", "overlay"))
    world.stack.up()
    # The old one is never dialled for its `down`.
    assert [line for line in world.told if line.startswith("edge-")] == [
        *("edge-overlay-up", "edge-overlay-up"),
        *("edge-prepare-up", "edge-prepare-up"),
    ]


def test_the_stack_can_be_destroyed_without_the_host(world: World) -> None:
    world.write(lost=True, steps=("prepare", "overlay"))
    world.stack.up()
    world.stack.destroy()
    assert [line for line in world.told if line.endswith("-down")] == ["head-prepare-down"]


def test_a_host_that_is_found_again_goes_on_where_it_was(world: World) -> None:
    world.write(lost=True, settings="two", steps=("prepare", "overlay", "ray"))
    world.stack.up()
    world.edge.start()
    world.write(settings="two", steps=("prepare", "overlay", "ray"))
    world.stack.up()
    assert [line for line in world.told if line.startswith("edge-")] == [
        *("edge-overlay-up", "edge-overlay-up"),
        *("edge-prepare-up", "edge-prepare-up"),
        "edge-ray-up",
    ]
    world.stack.destroy()
    assert {"edge-ray-down", "edge-overlay-down", "edge-prepare-down"} <= set(world.told)
