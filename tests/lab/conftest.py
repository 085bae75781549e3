"""The lab that the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from lab.session import Session, name_for_tests, running, take_down_orphans


@pytest.fixture(scope="session")
def lab() -> Generator[Session, None, None]:
    """A lab of a bootstrap, one cloud node and two edges, up for the whole run.

    A test that changes a host puts it right again.
    """
    if os.geteuid() != 0:
        pytest.fail("tests/lab boot real hosts and need root")
    take_down_orphans()
    with running(name_for_tests(), edges=2) as session:
        yield session
