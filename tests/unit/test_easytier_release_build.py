"""The archive is built once, whole or not at all, and the same from the same."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from lab.easytier_release import ARCHIVE_NAME, build
from lab.easytier_release.build import BuildError
from lab.easytier_release.standin import EASYTIER_VERSION
from lab.easytier_release.standin.extension import MEMBER

STAND_IN_UV = """#!/bin/sh
# Puts a wheel's files where uv would: the last option but two is --target's value.
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/easytier_pyo3" "$2/easytier_pyo3-0.1.3.dist-info/licenses"
printf 'core /%s/ %s' "{commit}" "{salt}" >"$2/easytier_pyo3/easytier_pyo3.cpython-311-x86_64-linux-gnu.so"
printf licence >"$2/easytier_pyo3-0.1.3.dist-info/licenses/LICENSE"
"""


def uv(folder: Path, commit: str = EASYTIER_VERSION.partition("-")[2][:7], salt: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "uv"
    program.write_text(STAND_IN_UV.format(commit=commit, salt=salt))
    program.chmod(0o755)
    return program


def test_the_archive_has_upstreams_name_and_layout(tmp_path: Path) -> None:
    assert ARCHIVE_NAME == "easytier-linux-x86_64-v2.6.4.zip"
    with zipfile.ZipFile(build(tmp_path / "deep" / ARCHIVE_NAME, uv(tmp_path))) as archive:
        modes = {entry.filename: stat.filemode(entry.external_attr >> 16) for entry in archive.infolist()}
        archive.extract("easytier-linux-x86_64/easytier-core", tmp_path)
    assert modes == {
        "easytier-linux-x86_64/easytier-cli": "-rwxr-xr-x",
        "easytier-linux-x86_64/easytier-core": "-rwxr-xr-x",
    }
    with zipfile.ZipFile(tmp_path / "easytier-linux-x86_64/easytier-core") as core:
        assert {MEMBER, "__main__.py", "licenses/LICENSE"} <= set(core.namelist())


def test_two_builds_of_the_same_are_the_same_bytes(tmp_path: Path) -> None:
    first = build(tmp_path / "a.zip", uv(tmp_path / "one"))
    second = build(tmp_path / "b.zip", uv(tmp_path / "two"))
    assert first.read_bytes() == second.read_bytes()


def test_a_second_build_does_nothing(tmp_path: Path) -> None:
    archive = build(tmp_path / "a.zip", uv(tmp_path))
    before = archive.stat()
    assert build(archive, tmp_path / "no-uv-is-needed") == archive
    assert archive.stat() == before


@pytest.mark.parametrize("cut", [0, 100, -1])
def test_an_archive_that_was_cut_off_is_built_again(tmp_path: Path, cut: int) -> None:
    archive = build(tmp_path / "a.zip", uv(tmp_path))
    whole = archive.read_bytes()
    archive.write_bytes(whole[:cut])
    assert build(archive, uv(tmp_path)).read_bytes() == whole


def test_an_archive_of_another_origin_is_replaced(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as other:
        other.writestr("something", "else")
    build(archive, uv(tmp_path))
    with zipfile.ZipFile(archive) as opened:
        assert "something" not in opened.namelist()


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    folder.mkdir()
    archive = folder / "a.zip"
    archive.write_bytes(b"old")
    with pytest.raises(BuildError, match="uv can't fetch"):
        build(archive, tmp_path / "no-such-uv")
    with pytest.raises(BuildError, match="does not carry EasyTier"):
        build(archive, uv(tmp_path, commit="0000000"))
    assert archive.read_bytes() == b"old"
    assert list(folder.iterdir()) == [archive]
