"""Settings that stacks share: `extends` names a file with a `cluster` that a stack's own settings lie over."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from config.faults import Fault, shown
from config.yaml_text import FileError, loaded, read


def extended(raw: object, folder: Path) -> tuple[object, list[Fault]]:
    """The settings over those that they extend, and what is wrong with these.

    Objects are merged key by key; lists and all else are replaced. A key with nothing in it takes the shared one out.

    Args:
        raw: the `cluster` object, not validated.
        folder: with Pulumi.yaml.
    """
    if not isinstance(raw, dict):
        return raw, []
    own = cast("dict[str, object]", raw)
    name = own.get("extends")
    if not isinstance(name, str):
        return own, []
    try:
        return _merged(_cluster(loaded(read(folder, name))), own), []
    except FileError as error:
        return own, [Fault("cluster.extends", shown(name), error.rule, error.fix)]


def _cluster(document: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML of any shape
    keys = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    cluster = keys.get("cluster")
    if not isinstance(cluster, dict) or len(keys) > 1:
        raise FileError("must have the one key `cluster`, and an object in it", "see config/shared.yaml")
    if "extends" in cluster:
        raise FileError("shared settings extend no others", "remove its extends")
    return cast("dict[str, Any]", cluster)


def _merged(under: Any, over: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    merged = dict(cast("dict[str, Any]", under))
    for key, value in cast("dict[str, Any]", over).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged[key], value) if key in merged else value
    return merged
