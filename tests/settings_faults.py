"""What is wrong with settings, for tests that expect something to be."""

from __future__ import annotations

from typing import Any

import pytest

from config.faults import Fault, SettingsError
from config.load import parse


def faults(raw: dict[str, Any]) -> list[Fault]:
    """All faults of settings that have some."""
    with pytest.raises(SettingsError) as caught:
        parse(raw)
    return list(caught.value.faults)


def only_fault(raw: dict[str, Any]) -> Fault:
    """The fault of settings that have one."""
    found = faults(raw)
    assert len(found) == 1, "\n".join(map(str, found))
    return found[0]
