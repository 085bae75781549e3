"""Options that every suite knows."""

from __future__ import annotations

import importlib

import pytest

# First of all: the command plugin takes the place of an SDK that is not loaded.
importlib.import_module("pulumi")

# What fails there says with which values, too.
pytest.register_assert_rewrite("tests.lab.cluster_fixtures", "tests.lab.join_fixtures", "tests.lab.change_fixtures")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write the golden files of tests/unit anew")
    parser.addoption("--generated", type=int, default=1000, help="how many settings tests/proof generates (1000)")
