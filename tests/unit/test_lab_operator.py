"""A lab's wrappers call the machine's own commands, also where another lab's wrappers come first on PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab import operator
from lab.state import LabFiles


@pytest.fixture
def files(tmp_path: Path) -> LabFiles:
    files = LabFiles(tmp_path / "labs" / "one")
    files.root.mkdir(parents=True)
    return files


def test_the_wrappers_of_another_lab_are_passed_over(
    files: LabFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, own = tmp_path / "labs" / "other" / "bin", tmp_path / "commands"
    for folder in (other, own):
        folder.mkdir(parents=True)
        for name in ("pulumi", "ssh", "scp", "sftp", "ssh-keyscan", "curl"):
            (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(other), str(own)]))
    operator.write_commands(files, "one", [])
    for wrapper in files.bin.iterdir():
        assert f" {own / wrapper.name} " in wrapper.read_text()
        assert str(other) not in wrapper.read_text()
