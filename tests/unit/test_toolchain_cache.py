"""Where the project keeps things, how it says what it does, and folders that are whole or not there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lab.paths import Cache
from lab.progress import duration, step
from lab.toolchain.atomic import digest_of_sources, digest_of_tree, made_from, make_once


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


class TestCacheDirectory:
    """One directory, chosen by the environment alone."""

    def test_its_own_variable_wins(self) -> None:
        environment = {"RLINF_CLOUD_EDGE_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}
        assert Cache.from_environment(environment).root == Path("/a")

    def test_the_desktop_standard_comes_next(self) -> None:
        assert Cache.from_environment({"XDG_CACHE_HOME": "/b", "HOME": "/c"}).root == Path("/b/rlinf-cloud-edge")

    def test_home_comes_last(self) -> None:
        assert Cache.from_environment({"HOME": "/c"}).root == Path("/c/.cache/rlinf-cloud-edge")

    def test_a_relative_directory_is_refused_by_name(self) -> None:
        with pytest.raises(ValueError, match="RLINF_CLOUD_EDGE_CACHE=here is not an absolute path"):
            Cache.from_environment({"RLINF_CLOUD_EDGE_CACHE": "here"})


class TestProgress:
    """Lines that a person can read, on standard error."""

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (0.04, "0.0 s"),
            (9.94, "9.9 s"),
            (9.96, "10 s"),
            (59.4, "59 s"),
            (59.6, "1 min 0 s"),
            (200, "3 min 20 s"),
        ],
    )
    def test_durations_are_for_people(self, seconds: float, text: str) -> None:
        assert duration(seconds) == text

    def test_a_step_says_its_beginning_and_its_end_on_standard_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        with step("Doing it"):
            pass
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines() == ["==> Doing it", "    done in 0.0 s"]

    def test_a_step_that_fails_says_so_and_lets_the_error_through(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(KeyError), step("Doing it"):
            raise KeyError
        assert "failed after 0.0 s: Doing it" in capsys.readouterr().err


class TestMakeOnce:
    """A made folder is whole or not there, and is made again only when its origin changes."""

    def test_it_is_made_when_it_is_not_there(self, cache: Cache) -> None:
        folder = make_once(cache, cache.root / "a" / "b", "1", lambda new: _write(new, "content"))
        assert (folder / "file").read_text() == "content"
        assert made_from(folder) == "1"

    def test_it_is_not_made_again(self, cache: Cache) -> None:
        make_once(cache, cache.root / "b", "1", lambda new: _write(new, "first"))
        make_once(cache, cache.root / "b", "1", lambda new: _write(new, "second"))
        assert (cache.root / "b" / "file").read_text() == "first"

    def test_another_origin_replaces_it_whole(self, cache: Cache) -> None:
        make_once(cache, cache.root / "b", "1", lambda new: _write(new, "first", name="old"))
        make_once(cache, cache.root / "b", "2", lambda new: _write(new, "second"))
        assert sorted(path.name for path in (cache.root / "b").iterdir()) == [".made-from", "file"]

    def test_a_failure_leaves_the_old_one_and_nothing_else(self, cache: Cache) -> None:
        def fail(new: Path) -> None:
            _write(new, "half")
            raise RuntimeError("no more disk")

        make_once(cache, cache.root / "b", "1", lambda new: _write(new, "first"))
        with pytest.raises(RuntimeError):
            make_once(cache, cache.root / "b", "2", fail)
        assert (cache.root / "b" / "file").read_text() == "first"
        assert sorted(path.name for path in cache.root.iterdir()) == ["b", "locks"]

    def test_what_a_killed_run_left_is_cleared(self, cache: Cache) -> None:
        _write(cache.root / ".b.new", "left behind", name="stray")
        folder = make_once(cache, cache.root / "b", "1", lambda new: _write(new, "content"))
        assert not (folder / "stray").exists()
        assert not (cache.root / ".b.new").exists()

    def test_two_runs_at_once_make_it_once(self, cache: Cache) -> None:
        made: list[str] = []
        making, go_on = threading.Event(), threading.Event()

        def slow(new: Path) -> None:
            making.set()
            go_on.wait(timeout=30)
            made.append(new.name)

        first = threading.Thread(target=make_once, args=(cache, cache.root / "b", "1", slow))
        second = threading.Thread(target=make_once, args=(cache, cache.root / "b", "1", slow))
        first.start()
        assert making.wait(timeout=30)
        second.start()
        go_on.set()
        first.join(timeout=30)
        second.join(timeout=30)
        assert len(made) == 1


class TestDigests:
    """What tells that something has to be made or installed again."""

    def test_a_changed_file_changes_both(self, tmp_path: Path) -> None:
        _write(tmp_path, "one")
        before = digest_of_tree(tmp_path), digest_of_sources(tmp_path)
        _write(tmp_path, "three")
        assert digest_of_tree(tmp_path) != before[0]
        assert digest_of_sources(tmp_path) != before[1]

    def test_what_python_compiles_by_itself_changes_neither(self, tmp_path: Path) -> None:
        _write(tmp_path, "one")
        before = digest_of_tree(tmp_path), digest_of_sources(tmp_path)
        _write(tmp_path / "__pycache__", "compiled", name="file.pyc")
        assert (digest_of_tree(tmp_path), digest_of_sources(tmp_path)) == before

    def test_copies_have_the_same_sources(self, tmp_path: Path) -> None:
        _write(tmp_path / "a", "one")
        _write(tmp_path / "b", "one")
        assert digest_of_sources(tmp_path / "a") == digest_of_sources(tmp_path / "b")

    def test_a_folder_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            digest_of_tree(tmp_path / "none")


def _write(folder: Path, content: str, name: str = "file") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)
