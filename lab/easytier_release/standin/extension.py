"""Loads the compiled EasyTier core out of the executable's own archive.

It goes through an anonymous file in memory, so nothing is unpacked on the host's disk: no cache to clean up,
to go stale, or to be written by a service with a minimal environment.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

MEMBER = "easytier_pyo3.so"
"""The compiled core's name in the archive, at its root."""


class Node(Protocol):
    """One EasyTier node; the part of `easytier_pyo3.Node` that is used here."""

    def start(self) -> None:
        """Opens listeners and device; raises RuntimeError with the reason when it can't."""
        ...

    def stop(self) -> None:
        """Stops the node and removes its device. Safe to call again."""
        ...

    def state(self) -> str:
        """Created, Starting, Running, Stopping or Stopped."""
        ...

    def latest_error(self) -> str | None:
        """The last error with its causes, if there was one."""
        ...

    def next_event(self, timeout: float | None) -> dict[str, object] | None:
        """Waits at most `timeout` seconds for an event, `{name: payload}`."""
        ...

    def peers(self) -> list[dict[str, object]]:
        """Peers with a connection of their own, as protobuf's JSON mapping."""
        ...

    def routes(self) -> list[dict[str, object]]:
        """Every other node of the network, as protobuf's JSON mapping."""
        ...

    def node_info(self) -> dict[str, object]:
        """This node."""
        ...


class Core(Protocol):
    """The module `easytier_pyo3`."""

    def Node(self, config: Mapping[str, object]) -> Node:  # noqa: N802 - the module's own name
        """Makes a node from a configuration; raises ValueError with the reason when it is bad."""
        ...

    def version(self) -> str:
        """EasyTier's version, such as `2.6.4-81487c36`."""
        ...


class CoreUnavailableError(Exception):
    """The compiled core can't be loaded on this host."""


def load(archive: Path) -> Core:
    """Loads the compiled core.

    Args:
        archive: the executable, a zip file that holds `MEMBER` at its root.

    Raises:
        CoreUnavailableError: not in the archive, or not loadable by this Python or C library.
    """
    try:
        return _load(_read(archive))
    except (OSError, ImportError) as error:
        raise CoreUnavailableError(f"the EasyTier core in {archive} can't be loaded: {error}") from error


def _read(archive: Path) -> bytes:
    from zipimport import zipimporter  # noqa: PLC0415 - not needed for --help

    return zipimporter(str(archive)).get_data(str(archive / MEMBER))


def _load(shared_object: bytes) -> Core:
    descriptor = os.memfd_create(MEMBER, os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as out:
            out.write(shared_object)
        path = f"/proc/self/fd/{descriptor}"
        loader = importlib.machinery.ExtensionFileLoader("easytier_pyo3", path)
        spec = importlib.util.spec_from_file_location("easytier_pyo3", path, loader=loader)
        if spec is None:
            raise ImportError(f"no module specification for {path}")
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    finally:
        os.close(descriptor)
    return cast(Core, module)
