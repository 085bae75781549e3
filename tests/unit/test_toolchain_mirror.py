"""What the lab's mirror serves has upstream's names and layout, and comes from pinned packages."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from lab import aws_plugin, command_plugin
from lab.paths import CLONE
from lab.toolchain import versions
from lab.toolchain.mirror import (
    EASYTIER_ARCHIVE,
    LOCKS,
    UV_ARCHIVE,
    easytier_fault,
    easytier_given,
    repack_uv,
)

REQUIREMENTS = [CLONE / "requirements.txt", CLONE / "requirements-dev.txt"]


class TestEasyTierRelease:
    """EASYTIER_RELEASE is believed only when it is a release."""

    def test_an_archive_with_both_commands_is_taken(self, tmp_path: Path) -> None:
        archive = _release(tmp_path, "easytier-core", "easytier-cli")
        assert easytier_given({"EASYTIER_RELEASE": str(archive)}) == archive

    def test_without_the_variable_there_is_none(self) -> None:
        assert easytier_given({}) is None

    def test_a_missing_command_is_named(self, tmp_path: Path) -> None:
        archive = _release(tmp_path, "easytier-core")
        with pytest.raises(ValueError, match="lacks easytier-linux-x86_64/easytier-cli"):
            easytier_given({"EASYTIER_RELEASE": str(archive)})

    def test_a_file_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        assert easytier_fault(tmp_path / "none.zip") == "is not a file"

    def test_a_file_that_is_no_zip_is_refused(self) -> None:
        assert easytier_fault(Path(__file__)) == "is not a zip archive"

    def test_it_lies_under_upstreams_name(self) -> None:
        assert str(EASYTIER_ARCHIVE) == "easytier/v2.6.4/easytier-linux-x86_64-v2.6.4.zip"


class TestUvRelease:
    """The archive is upstream's in all but the compression."""

    def test_it_has_upstreams_layout_and_executable_commands(self, tmp_path: Path) -> None:
        archive = tmp_path / UV_ARCHIVE.name
        repack_uv(_wheel(tmp_path), archive)
        with tarfile.open(archive) as tar:
            modes = {member.name: member.mode for member in tar}
            content = tar.extractfile("uv-x86_64-unknown-linux-musl/uvx")
            assert content is not None
            assert content.read() == b"the uvx"
        top = "uv-x86_64-unknown-linux-musl"
        assert modes == {top: 0o755, f"{top}/uv": 0o755, f"{top}/uvx": 0o755}

    def test_the_same_wheel_gives_the_same_bytes(self, tmp_path: Path) -> None:
        wheel = _wheel(tmp_path)
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            repack_uv(wheel, tmp_path / name / UV_ARCHIVE.name)
        first, second = ((tmp_path / name / UV_ARCHIVE.name).read_bytes() for name in ("a", "b"))
        assert first == second


class TestPins:
    """A version that stands in two places is the same in both, and every lock is complete."""

    def test_locks_and_names_agree(self) -> None:
        assert _pins(LOCKS / "uv.txt") == {"uv": versions.UV}
        assert _pins(LOCKS / "ray.txt")["ray"] == versions.RAY
        assert _pins(REQUIREMENTS[1])["ray"] == versions.RAY
        for substitute in (command_plugin.SUBSTITUTE, aws_plugin.SUBSTITUTE):
            assert _pins(REQUIREMENTS[0])[f"pulumi-{substitute.name}"] == substitute.version

    def test_the_go_that_is_fetched_is_new_enough(self) -> None:
        [version] = _pins(LOCKS / "go.txt").values()
        assert tuple(int(part) for part in version.split(".")) >= versions.GO_MINIMUM

    @pytest.mark.parametrize("lock", [*REQUIREMENTS, *sorted(LOCKS.iterdir())], ids=lambda path: path.name)
    def test_every_pin_has_a_digest_and_no_lock_names_an_index(self, lock: Path) -> None:
        text = lock.read_text()
        assert "://" not in text
        for requirement in re.split(r"\n(?=[a-z])", text.strip()):
            assert "--hash=sha256:" in requirement

    def test_everything_that_pyproject_asks_for_is_locked(self) -> None:
        project = tomllib.loads((CLONE / "pyproject.toml").read_text())
        runtime = project["project"]["dependencies"]
        groups = project["dependency-groups"]
        assert _names(runtime) <= _pins(REQUIREMENTS[0]).keys()
        assert _names([*runtime, *groups["dev"], *groups["lab"]]) <= _pins(REQUIREMENTS[1]).keys()

    def test_the_development_lock_contains_the_runtime_lock(self) -> None:
        assert _pins(REQUIREMENTS[0]).items() <= _pins(REQUIREMENTS[1]).items()


def _pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock.read_text(), flags=re.MULTILINE))


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", requirement)[0].replace(".", "-") for requirement in requirements}


def _release(folder: Path, *commands: str) -> Path:
    archive = folder / EASYTIER_ARCHIVE.name
    with zipfile.ZipFile(archive, "w") as release:
        for command in commands:
            release.writestr(f"easytier-linux-x86_64/{command}", command)
    return archive


def _wheel(folder: Path) -> Path:
    wheel = folder / "uv.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for command in ("uv", "uvx"):
            archive.writestr(f"uv-{versions.UV}.data/scripts/{command}", f"the {command}")
    return wheel
