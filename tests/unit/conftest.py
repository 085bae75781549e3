"""The flag that rewrites golden files."""

from __future__ import annotations

import pytest


@pytest.fixture
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--rewrite-golden"))
