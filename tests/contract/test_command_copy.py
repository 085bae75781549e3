"""What `command:remote:CopyToRemote` copies, where to, and when it copies again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.contract.command_harness import (
    COPY,
    UNKNOWN,
    CallError,
    Json,
    Provider,
    file_archive,
    file_asset,
    secret,
    text_asset,
)
from tests.contract.command_sshd import Sshd
from tests.contract.conftest import StartSshd


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A folder that the tests copy into; it is on the same machine, and reached by SFTP."""
    folder = tmp_path / "remote"
    folder.mkdir()
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder to copy: two files, one of them in a folder within."""
    folder = tmp_path / "source"
    (folder / "inner").mkdir(parents=True)
    (folder / "outer.txt").write_text("outer")
    (folder / "inner" / "deep.bin").write_bytes(bytes(range(256)))
    return folder


def copy(provider: Provider, sshd: Sshd, source: Json, path: Path | str, **connection: Any) -> Json:
    """Copies and returns the state."""
    inputs = {
        "connection": secret(sshd.connection(**connection)),
        "source": source,
        "remotePath": str(path),
    }
    created = provider.create(COPY, inputs)
    assert created.id
    return created.state


def tree(folder: Path) -> list[str]:
    """Every path under a folder; folders end in a slash."""
    return sorted(str(path.relative_to(folder)) + ("/" if path.is_dir() else "") for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (text_asset("x"), None),
        (text_asset(""), None),
        (file_asset("/x"), None),
        (file_archive("/x"), None),
        ({**text_asset(""), "uri": "file:///x"}, "asset must be a path-based file asset or a text asset"),
        ({**file_archive(""), "assets": {}}, "archive must be a path to a file or directory"),
        ("no asset", "either asset or archive must be set"),
        (UNKNOWN, "either asset or archive must be set"),
    ],
)
def test_check_says_what_can_be_copied(provider: Provider, source: Any, fault: str | None) -> None:
    inputs = {"connection": {"host": "h"}, "source": source, "remotePath": "/x"}
    _, failures = provider.check(COPY, inputs)
    assert [failure["reason"] for failure in failures] == ([fault] if fault else [])


def test_a_file_becomes_the_remote_path(provider: Provider, sshd: Sshd, source: Path, remote: Path) -> None:
    copy(provider, sshd, file_asset(source / "inner" / "deep.bin"), remote / "copy")
    assert (remote / "copy").read_bytes() == bytes(range(256))


def test_a_file_goes_into_an_existing_folder(provider: Provider, sshd: Sshd, source: Path, remote: Path) -> None:
    copy(provider, sshd, file_asset(source / "outer.txt"), remote)
    assert tree(remote) == ["outer.txt"]


def test_a_file_overwrites_a_longer_one(provider: Provider, sshd: Sshd, remote: Path) -> None:
    (remote / "there").write_text("something longer")
    copy(provider, sshd, text_asset("short"), remote / "there")
    assert (remote / "there").read_text() == "short"


def test_missing_parent_folders_are_made(provider: Provider, sshd: Sshd, source: Path, remote: Path) -> None:
    copy(provider, sshd, file_asset(source / "outer.txt"), remote / "a" / "b" / "c")
    copy(provider, sshd, text_asset("text"), remote / "d" / "e")
    assert tree(remote) == ["a/", "a/b/", "a/b/c", "d/", "d/e"]


def test_a_relative_path_starts_at_the_users_home(provider: Provider, sshd: Sshd, tmp_path: Path) -> None:
    target = os.path.relpath(tmp_path / "relative", Path.home())
    copy(provider, sshd, text_asset("text"), target)
    assert (tmp_path / "relative").read_text() == "text"


def test_a_folder_is_copied_under_its_own_name(provider: Provider, sshd: Sshd, source: Path, remote: Path) -> None:
    copy(provider, sshd, file_archive(source), remote)
    copy(provider, sshd, file_archive(source), remote / "new")
    inside = ["source/", "source/inner/", "source/inner/deep.bin", "source/outer.txt"]
    assert tree(remote) == ["new/", *(f"new/{path}" for path in inside), *inside]


def test_a_folder_with_a_trailing_slash_is_copied_by_its_contents(
    provider: Provider, sshd: Sshd, source: Path, remote: Path
) -> None:
    copy(provider, sshd, file_archive(f"{source}/"), remote / "new")
    assert tree(remote) == ["new/", "new/inner/", "new/inner/deep.bin", "new/outer.txt"]


def test_a_folder_is_merged_into_one_that_is_there(provider: Provider, sshd: Sshd, source: Path, remote: Path) -> None:
    (remote / "inner").mkdir()
    (remote / "inner" / "kept").write_text("kept")
    copy(provider, sshd, file_archive(f"{source}/"), remote)
    assert tree(remote) == ["inner/", "inner/deep.bin", "inner/kept", "outer.txt"]


def test_an_archive_file_is_copied_as_it_is(provider: Provider, sshd: Sshd, remote: Path) -> None:
    packed = remote.parent / "packed.tgz"
    packed.write_bytes(b"\x1f\x8b not really an archive")
    copy(provider, sshd, file_archive(packed), remote)
    assert (remote / "packed.tgz").read_bytes() == packed.read_bytes()


def test_what_cannot_be_copied_fails_and_says_why(provider: Provider, sshd: Sshd, source: Path, remote: Path) -> None:
    (remote / "file").write_text("there")
    for what, path, reason in (
        (file_asset("/nowhere/file"), remote / "x", "open /nowhere/file: no such file or directory"),
        (text_asset("x"), remote, "is a directory; when using a text asset, remotePath must be a file path"),
        (file_archive(f"{source}/"), remote / "file", "exists but is not a directory"),
        (text_asset("x"), remote / "file" / "x", "failed to create parent directories"),
        (text_asset("x"), Path("/proc/nowhere/x"), "failed to create parent directories for /proc/nowhere/x"),
    ):
        with pytest.raises(CallError, match=reason):
            copy(provider, sshd, what, path)


def test_a_copy_goes_through_a_jump(provider: Provider, sshd: Sshd, bastion: Sshd, remote: Path) -> None:
    before = bastion.logins
    copy(provider, sshd, text_asset("far"), remote / "far", proxy=bastion.connection())
    assert (remote / "far").read_text() == "far"
    assert bastion.logins == before + 1


def test_an_update_copies_again_only_if_content_or_path_changed(provider: Provider, sshd: Sshd, remote: Path) -> None:
    def inputs(content: str, name: str, **more: Any) -> Json:
        asset = {**text_asset(content), "hash": content}
        path = str(remote / name)
        return {"connection": secret(sshd.connection()), "source": asset, "remotePath": path, **more}

    first = inputs("one", "file")
    provider.create(COPY, first)
    (remote / "file").write_text("changed there")
    provider.update(COPY, first, inputs("one", "file", triggers=[1]))
    assert (remote / "file").read_text() == "changed there"
    provider.update(COPY, first, inputs("two", "file"))
    assert (remote / "file").read_text() == "two"
    provider.update(COPY, first, inputs("one", "other"))
    assert tree(remote) == ["file", "other"]


def test_a_delete_leaves_the_copy_where_it_is(provider: Provider, sshd: Sshd, remote: Path) -> None:
    state = copy(provider, sshd, text_asset("stays"), remote / "file")
    provider.delete(COPY, state)
    assert (remote / "file").read_text() == "stays"


def test_a_copy_closes_its_connection(provider: Provider, start_sshd: StartSshd, remote: Path) -> None:
    server = start_sshd()
    copy(provider, server, text_asset("x"), remote / "file")
    assert server.established() == 0


def test_no_content_is_logged(provider: Provider, sshd: Sshd, remote: Path) -> None:
    copy(provider, sshd, text_asset("canary"), remote / "file")
    assert "canary" not in provider.everything_logged
