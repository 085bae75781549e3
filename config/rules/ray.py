"""Where Ray comes from."""

from __future__ import annotations

from collections.abc import Iterator

from config.faults import Fault, shown
from config.models import Cluster, RayEnvironment
from config.rules.hosts import keyed_nodes


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with the settings of Ray."""
    ray = cluster.ray
    if ray.index_url is not None and ray.find_links is not None:
        rule = "wheels come from an index or from a page of wheels, not from both"
        yield Fault("cluster.ray.find_links", ray.find_links, rule, "remove cluster.ray.index_url or this key")
    yield from _one_environment("cluster.ray", ray)
    for key, node in keyed_nodes(cluster):
        if node.ray is not None:
            yield from _one_environment(f"{key}.ray", node.ray)
            if not node.ray.exists:
                rule = "names the existing environment of this host's Ray"
                yield Fault(f"{key}.ray", None, rule, "add venv or activate, or remove it: cluster.ray then holds")


def _one_environment(key: str, ray: RayEnvironment) -> Iterator[Fault]:
    if ray.venv is not None and ray.activate is not None:
        rule = "an environment is named by its path or by a command, not by both"
        yield Fault(f"{key}.activate", shown(ray.activate), rule, f"remove it, or {key}.venv")
