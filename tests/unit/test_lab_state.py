"""The record of a lab, and who may work on it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lab import state as lab_state
from lab.errors import LabError
from lab.paths import Cache
from lab.processes import Process
from lab.state import LabFiles, State, claimed, claimed_names

RECORD = State(
    name="demo",
    clouds=1,
    edges=2,
    phase="up",
    started_at="2026-11-30T12:00:00+00:00",
    image="/images/x/root",
    bin_dirs=("/a", "/b"),
    pulumi_home="/home",
    substitutes=("One.",),
    easytier_sha256="0" * 64,
    uv_sha256="1" * 64,
    processes={"mirror": Process(10, 20, "boot")},
    stopped=("edge-2",),
)


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A /run of the test's own."""
    folder = tmp_path / "run"
    monkeypatch.setattr(lab_state, "_RUN", folder)
    return folder


class TestRecord:
    """A record is read as it was written, or not at all."""

    @pytest.mark.parametrize(
        "record", [RECORD, replace(RECORD, growing_to=(1, 4), stopped=(), kinds={"edge-1": "container"})]
    )
    def test_it_is_read_as_it_was_written(self, tmp_path: Path, record: State) -> None:
        files = LabFiles(tmp_path / "demo")
        files.save(record)
        assert files.load() == record

    @pytest.mark.parametrize("text", [None, "", "{", "[]", '{"name": "demo"}', '{"processes": {}, "surprise": 1}'])
    def test_one_that_can_not_be_read_counts_as_none(self, tmp_path: Path, text: str | None) -> None:
        files = LabFiles(tmp_path)
        if text is not None:
            files.state.write_text(text)
        assert files.load() is None

    def test_hosts_that_are_being_added_are_wanted_but_not_there(self) -> None:
        growing = replace(RECORD, growing_to=(2, 3))
        assert growing.topology == RECORD.topology
        assert {host.name for host in growing.wanted.hosts} - {host.name for host in growing.topology.hosts} == {
            "cloud-2",
            "edge-3",
        }

    def test_a_kind_counts_once_its_edge_is_wanted(self) -> None:
        growing = replace(RECORD, growing_to=(1, 3), kinds={"edge-3": "container"})
        assert growing.wanted.host("edge-3").kind == "container"
        assert {host.kind for host in growing.topology.hosts} == {"systemd"}


class TestClaim:
    """A name belongs to one lab of the machine, and one command at a time works on it."""

    def test_a_second_command_waits_for_the_first(self, tmp_path: Path) -> None:
        root = tmp_path / "labs/demo"
        order: list[str] = []
        waiting = threading.Event()

        def second() -> None:
            waiting.set()
            with claimed("demo", root):
                order.append("second")

        with claimed("demo", root):
            thread = threading.Thread(target=second)
            thread.start()
            assert waiting.wait(10)
            order.append("first")
        thread.join(10)
        assert order == ["first", "second"]

    def test_commands_on_other_labs_may_end_at_any_moment(self, tmp_path: Path) -> None:
        """The folder of the claims, and each claim, comes and goes with the last of them."""
        cache = Cache(tmp_path / "cache")

        def claim_often(name: str) -> int:
            for _ in range(300):
                with claimed(name, cache.labs / name):
                    assert name in claimed_names(cache)
            return 300

        names = ["a", "a", "b", "c"]
        with ThreadPoolExecutor(len(names)) as pool:
            assert list(pool.map(claim_often, names)) == [300] * len(names)

    def test_a_file_in_the_place_of_the_claims_is_an_error(self, tmp_path: Path, run: Path) -> None:
        run.write_text("")
        with pytest.raises(FileExistsError), claimed("demo", tmp_path / "labs/demo"):
            pass

    def test_a_lab_of_another_cache_is_refused_and_named(self, tmp_path: Path) -> None:
        theirs = tmp_path / "theirs/labs/demo"
        theirs.mkdir(parents=True)
        with claimed("demo", theirs):
            pass
        refused = pytest.raises(LabError, match=f"belongs to a lab of another cache \\({theirs}\\)")
        with refused, claimed("demo", tmp_path / "mine/labs/demo"):
            pass

    def test_a_name_whose_lab_is_gone_is_free(self, tmp_path: Path, run: Path) -> None:
        gone, root = tmp_path / "gone/labs/demo", tmp_path / "labs/demo"
        run.mkdir()
        (run / "demo").write_text(str(gone))
        with claimed("demo", root):
            root.mkdir(parents=True)
        assert (run / "demo").read_text() == str(root)

    def test_nothing_is_left_when_the_lab_is_gone_also_after_an_error(self, tmp_path: Path, run: Path) -> None:
        with pytest.raises(ZeroDivisionError), claimed("demo", tmp_path / "labs/demo"):
            raise ZeroDivisionError
        assert not run.exists()

    def test_all_labs_of_a_cache_are_found_by_their_files_or_their_claims(self, tmp_path: Path, run: Path) -> None:
        cache = Cache(tmp_path / "cache")
        theirs = tmp_path / "theirs/labs/c"
        theirs.mkdir(parents=True)
        (cache.labs / "a").mkdir(parents=True)
        run.mkdir()
        for name, owner in (("b", cache.labs / "b"), ("c", theirs), ("d", tmp_path / "gone")):
            (run / name).write_text(str(owner))
        assert claimed_names(cache) == ["a", "b", "d"]
