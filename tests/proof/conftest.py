"""RLinf, built once and asked by all."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from lab.paths import Cache
from lab.rlinf_env import build
from tests.proof.rlinf import Oracle


@pytest.fixture(scope="session")
def rlinf_python() -> Path:
    """The interpreter of the environment that RLinf is installed in."""
    cache = Cache.from_environment()
    return build(cache.rlinf, cache.uv) / "bin" / "python"


@pytest.fixture(scope="session")
def oracle(rlinf_python: Path) -> Generator[Oracle, None, None]:
    oracle = Oracle(rlinf_python)
    yield oracle
    oracle.close()
