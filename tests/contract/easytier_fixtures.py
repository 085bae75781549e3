"""Fixtures of the EasyTier contract: the release under test, and the network it is tried on.

The release is the archive that `EASYTIER_RELEASE` names, or the stand-in built here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.easytier_release import ARCHIVE_NAME, build
from tests.contract.easytier_harness import Host, Network, Release


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The release archive under test, unpacked."""
    given = os.environ.get("EASYTIER_RELEASE")
    archive = Path(given) if given else build(tmp_path_factory.mktemp("release") / ARCHIVE_NAME)
    return Release.unpack(archive, tmp_path_factory.mktemp("easytier"))


@pytest.fixture(scope="session")
def easytier_network(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """The network, without EasyTier."""
    network = Network(tmp_path_factory.mktemp("hosts"), release)
    try:
        network.open()
        yield network
    finally:
        network.close()


@pytest.fixture
def network(easytier_network: Network) -> Iterator[Network]:
    """The network, with no EasyTier left in it afterwards."""
    yield easytier_network
    easytier_network.stop_all()


@pytest.fixture
def bootstrap(network: Network) -> Host:
    """The host that all others know."""
    return network.hosts["bootstrap"]


@pytest.fixture
def head(network: Network) -> Host:
    """The cloud node: public, like the bootstrap."""
    return network.hosts["head"]


@pytest.fixture
def edge(network: Network) -> Host:
    """An edge behind NAT."""
    return network.hosts["edge-1"]


@pytest.fixture
def other_edge(network: Network) -> Host:
    """An edge behind another NAT."""
    return network.hosts["edge-2"]
