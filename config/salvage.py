"""Settings with single fields at fault, made fit for the rules between fields, so that all faults show at once.

What is at fault is left out, and what is required and missing gets a stand-in. What a rule then says of those very
keys, or of a placement whose resources are in doubt, is dropped by the caller with `in_doubt`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from pydantic import ValidationError

from config.faults import Fault
from config.models import Cluster

_ROUNDS = 4
_STAND_INS: dict[str, Any] = {"placement": "all", "overlay": {}}
_WHOLE = ("cloud", "edges")
"""Lists whose entries stay, since their keys hold a number."""
_DECIDE_RESOURCES = ("gpus", "hardware", "group", "enabled", "lost", "cloud", "edges", "ignore_hardware")


def salvaged(raw: object, error: ValidationError) -> Cluster | None:
    """The settings without what is at fault; None where too little is left.

    Args:
        raw: as given; it is not changed.
        error: what the models say of it.
    """
    settings = copy.deepcopy(raw)
    numbers = count(1)
    for _ in range(_ROUNDS):
        for detail in error.errors(include_url=False):
            location = [part for part in detail["loc"] if isinstance(part, int) or not part.startswith("\0")]
            if not _mend(settings, location, str(detail["type"]), numbers):
                return None
        try:
            return Cluster.model_validate(settings)
        except ValidationError as again:
            error = again
    return None


def in_doubt(fault: Fault, reported: Iterable[Fault]) -> bool:
    """Whether a fault may only follow from others that are reported."""
    is_placement = fault.key.startswith("cluster.rlinf.component_placement.")
    decisive = ("group", *_WHOLE) if fault.key.endswith(".node_group") else _DECIDE_RESOURCES
    for other in reported:
        if _within(fault.key, other.key) or _within(other.key, fault.key):
            return True
        # What a host does not say itself, it takes from the settings of all.
        if fault.key.endswith(".aws.ssh_from") and other.key.startswith("cluster.aws.ssh_from"):
            return True
        if is_placement and any(_about(name, other.key) for name in decisive):
            return True
    return False


def _about(name: str, key: str) -> bool:
    """Whether a key is that of a setting, or of an entry of one of the lists of hosts."""
    below = "$" if name in _WHOLE else r"(\[|\.|$)"
    return re.search(rf"\.{name}(\[[0-9]+\])?{below}", key) is not None


def _within(key: str, other: str) -> bool:
    return key == other or key.startswith((f"{other}.", f"{other}["))


def _mend(settings: Any, location: Sequence[int | str], kind: str, numbers: count[int]) -> bool:  # noqa: ANN401  # JSON
    """Takes out, or stands in for, what is at a location; false where that can't be done."""
    key_itself = location[-1:] == ["[key]"]
    steps = list(location[:-1] if key_itself else location)
    holders: list[Any] = [settings]
    try:
        for part in steps[:-1]:
            holders.append(holders[-1][part])
    except (LookupError, TypeError):
        return True  # taken out with what held it
    if not steps:
        return False
    holder, last = holders[-1], steps[-1]
    if kind == "missing":
        return _stand_in(holder, str(last), numbers)
    if isinstance(last, int):
        name = steps[-2] if len(steps) > 1 else ""
        if name in _WHOLE and isinstance(holder, list):
            holder[last] = {}
            return True
        # An entry taken out would shift those after it, and so their keys.
        holder, last = holders[-2], name
    if isinstance(holder, dict):
        holder.pop(last, None)  # pyright: ignore[reportUnknownMemberType]
        if last == "overlay":
            holder[last] = {}
        return True
    return False


def _stand_in(holder: Any, name: str, numbers: count[int]) -> bool:  # noqa: ANN401  # JSON
    if not isinstance(holder, dict):
        return False
    if name == "name":
        holder[name] = f"unnamed-{next(numbers)}"
    elif name == "address":
        holder[name] = f"unnamed-{next(numbers)}.invalid"
    elif name in _STAND_INS:
        holder[name] = copy.deepcopy(_STAND_INS[name])
    else:
        return False
    return True
