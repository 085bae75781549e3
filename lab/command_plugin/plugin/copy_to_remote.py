"""`command:remote:CopyToRemote`: files to another host, by SFTP. Nothing is removed there, ever."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path

import asyncssh
from asyncssh.constants import FILEXFER_TYPE_DIRECTORY

from lab.plugin_kit.operation import DEBUG, FailedError, Operation
from lab.plugin_kit.values import Archive, Asset, Value, object_of

from .connection import connection
from .dialing import dial, rejected
from .go_text import error_text

_BLOCK = 256 * 1024


async def copy(operation: Operation, inputs: Mapping[str, Value]) -> None:
    """Copies `source` to `remotePath`.

    A folder without a trailing slash is copied into the remote path under its own name, with one its contents are;
    a file goes into a remote folder, or becomes the remote path. Missing folders are made. Text needs a file's path.
    """
    target = connection(object_of(inputs, "connection"))
    source, destination = inputs.get("source"), str(inputs.get("remotePath"))
    is_text = isinstance(source, Asset) and not source.text("path")
    origin = "text asset" if is_text else f"local file {_path(source)}"
    await operation.say(DEBUG, f"Creating file: {target.host}:{destination} from {origin}")
    async with await dial(operation, target) as client:
        try:
            async with client.start_sftp_client() as sftp:
                if isinstance(source, Asset) and is_text:
                    await _copy_text(sftp, source.text("text"), destination)
                else:
                    await _copy_path(sftp, _path(source), destination)
        except asyncssh.ChannelOpenError as error:
            raise rejected(error) from error
        except asyncssh.SFTPError as error:
            raise FailedError(_sftp_text(error)) from error


def _path(source: Value) -> str:
    """The local path of an asset or archive, its trailing slash kept."""
    return source.text("path") if isinstance(source, Asset | Archive) else ""


async def _copy_text(sftp: asyncssh.SFTPClient, text: str, destination: str) -> None:
    if await _is_folder(sftp, destination):
        raise FailedError(
            f"remote path {destination} is a directory; when using a text asset, remotePath must be a file path"
        )
    await _make_folders(sftp, posixpath.dirname(destination) or ".", f"parent directories for {destination}")
    async with await _create(sftp, destination) as file:
        await file.write(text.encode())


async def _copy_path(sftp: asyncssh.SFTPClient, source: str, destination: str) -> None:
    path = Path(source)
    if not path.exists():
        raise FailedError(f"open {source}: no such file or directory")
    there = await _is_folder(sftp, destination)
    if path.is_dir():
        if there is None:
            await _make_folders(sftp, destination, f"remote directory {destination}")
        if not source.endswith("/"):
            destination = posixpath.join(destination, path.name)
        await _copy_folder(sftp, path, destination)
        return
    if there:
        destination = posixpath.join(destination, path.name)
    elif there is None:
        await _make_folders(sftp, posixpath.dirname(destination) or ".", f"parent directories for {destination}")
    await _copy_file(sftp, path, destination)


async def _copy_folder(sftp: asyncssh.SFTPClient, source: Path, destination: str) -> None:
    there = await _is_folder(sftp, destination)
    if there is False:
        raise FailedError(f"remote path {destination} exists but is not a directory")
    if there is None:
        try:
            await sftp.mkdir(destination)
        except asyncssh.SFTPError as error:
            raise _failed(f"failed to create remote directory {destination}", error) from error
    for entry in sorted(source.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            await _copy_folder(sftp, entry, posixpath.join(destination, entry.name))
        else:
            await _copy_file(sftp, entry, posixpath.join(destination, entry.name))


async def _copy_file(sftp: asyncssh.SFTPClient, source: Path, destination: str) -> None:
    try:
        with source.open("rb") as local:
            async with await _create(sftp, destination) as remote:
                while block := local.read(_BLOCK):
                    await remote.write(block)
    except OSError as error:
        raise FailedError(f"open {source}: {error_text(error)}") from error
    except asyncssh.SFTPError as error:
        raise _failed(f"failed to copy file {source} to remote path {destination}", error) from error


async def _create(sftp: asyncssh.SFTPClient, path: str) -> asyncssh.SFTPClientFile:
    try:
        return await sftp.open(path, "wb")
    except asyncssh.SFTPError as error:
        raise _failed(f"failed to create remote file {path}", error) from error


async def _is_folder(sftp: asyncssh.SFTPClient, path: str) -> bool | None:
    """Whether `path` is a folder there; `None`: there is nothing."""
    try:
        attributes = await sftp.stat(path)
    except asyncssh.SFTPNoSuchFile:
        return None
    except asyncssh.SFTPError as error:
        raise _failed(f"failed to stat remote path {path}", error) from error
    return attributes.type == FILEXFER_TYPE_DIRECTORY


async def _make_folders(sftp: asyncssh.SFTPClient, path: str, purpose: str) -> None:
    there = await _is_folder(sftp, path)
    if there is False:
        raise FailedError(f"failed to create {purpose}: mkdir {path}: not a directory")
    if there is None:
        parent = posixpath.dirname(path.rstrip("/"))
        if parent:
            await _make_folders(sftp, parent, purpose)
        try:
            await sftp.mkdir(path)
        except asyncssh.SFTPError as error:
            # Several copies may make the same folder at once.
            if not await _is_folder(sftp, path):
                raise _failed(f"failed to create {purpose}", error) from error


def _failed(what: str, error: asyncssh.SFTPError) -> FailedError:
    return FailedError(f"{what}: {_sftp_text(error)}")


def _sftp_text(error: asyncssh.SFTPError) -> str:
    match error:
        case asyncssh.SFTPNoSuchFile():
            return "file does not exist"
        case asyncssh.SFTPPermissionDenied():
            return "permission denied"
        case asyncssh.SFTPFailure():
            return f'sftp: "{error.reason}" (SSH_FX_FAILURE)'
        case _:
            return f"sftp: {error.reason}"
