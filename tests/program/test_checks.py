"""What the program asks Pulumi for so that every host is checked before any is changed."""

from __future__ import annotations

import base64
import io
import tarfile
from typing import Any

import pytest

from tests.example_settings import HOST_KEY, guide, guide_with_edges
from tests.program.harness import Recorder, plain, run_program


def names(recorder: Recorder, step: str) -> list[int]:
    """When the commands of a step were asked for."""
    return [index for index, name in enumerate(recorder.resources) if name.endswith(f"-{step}")]


def archive(command: dict[str, Any]) -> list[str]:
    """The names of the files that come with a command."""
    packed = plain(command["stdin"]).rpartition("\nscripts\n")[2]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as tar:
        return sorted(tar.getnames())


class TestOrder:
    """All checks come before the first change, and what waits for what stays small in the state."""

    def test_every_check_is_done_before_any_host_is_changed(self) -> None:
        recorder = run_program(guide_with_edges(3))
        assert len(names(recorder, "check")) == 5
        assert max(names(recorder, "check")) < min(names(recorder, "prepare"))

    def test_that_hosts_wait_for_each_other_is_no_dependency_in_the_state(self) -> None:
        requests = run_program(guide_with_edges(3)).requests
        assert requests["edge-1-check"]["dependencies"] == []
        assert requests["edge-1-prepare"]["dependencies"] == []

    def test_hosts_reached_over_the_overlay_are_checked_once_it_is_there_and_before_they_are_changed(self) -> None:
        raw = guide_with_edges(3)
        for edge in raw["edges"][1:]:
            edge |= {"join": "overlay", "joined": True, "ssh": {"host_key": HOST_KEY}}
        recorder = run_program(raw)
        order = list(recorder.resources)
        later = [order.index(f"edge-{number}-check") for number in (2, 3)]
        assert order.index("bootstrap-overlay") < min(later)
        assert max(later) < min(order.index(f"edge-{number}-prepare") for number in (2, 3))

    @pytest.mark.parametrize("absent", [{"lost": True}, {"join": "overlay", "ssh": {"host_key": HOST_KEY}}])
    def test_a_host_that_is_absent_is_not_checked_and_not_waited_for(self, absent: dict[str, Any]) -> None:
        raw = guide_with_edges(2)
        raw["edges"][1] |= absent
        commands = run_program(raw).commands
        assert "edge-2-check" not in commands
        assert {"edge-1-check", "edge-1-prepare", "edge-1-overlay"} <= set(commands)


class TestTheCommand:
    """A check brings what it needs, leaves nothing, and is made again when it may come out otherwise."""

    def test_there_is_nothing_to_undo(self) -> None:
        recorder = run_program(guide())
        check = recorder.commands["edge-1-check"]
        assert "delete" not in check
        assert check["create"] == "exec bash -s -- check.sh"
        # That of another machine in this place: whatever depends on what is deleted first goes with it.
        assert recorder.requests["edge-1-check"]["deleteBeforeReplace"] is False
        assert recorder.requests["edge-1-prepare"]["deleteBeforeReplace"] is True

    def test_it_brings_the_checks_and_the_host_keeps_what_it_runs_later(self) -> None:
        commands = run_program(guide()).commands
        assert archive(commands["edge-1-check"]) == [
            "accelerators.sh",
            "activation.sh",
            "check.sh",
            "lib.sh",
            "supervised.sh",
            "systemd.sh",
        ]
        kept = archive(commands["edge-1-prepare"])
        assert {"prepare.sh", "remove.sh", "overlay.sh", "ray.sh", "lib.sh", "supervise.py"} <= set(kept)
        assert not {"check.sh", "enter.sh", "join.sh", "gate.sh"} & set(kept)
        assert {"gate.sh", "gate.py", "ray_nodes.py"} <= set(archive(commands["cloud-1-prepare"]))

    def test_what_is_only_looked_for_changes_nothing_but_the_check(self) -> None:
        raw = guide()
        before = run_program(raw).commands
        raw["edges"][0]["gpus"] = 0
        after = run_program(raw).commands
        assert [name for name in before if before[name] != after[name]] == ["edge-1-check"]
