"""Where Ray comes from."""

from __future__ import annotations

from collections.abc import Iterator

from config.faults import Fault
from config.models import Cluster


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with the settings of Ray."""
    ray = cluster.ray
    if ray.index_url is not None and ray.find_links is not None:
        rule = "wheels come from an index or from a page of wheels, not from both"
        yield Fault("cluster.ray.find_links", ray.find_links, rule, "remove cluster.ray.index_url or this key")
