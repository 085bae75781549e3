"""Every host of the settings with the key it stands under."""

from __future__ import annotations

from collections.abc import Iterator

from config.models import Bootstrap, Cluster, RayHost


def keyed_hosts(cluster: Cluster) -> Iterator[tuple[str, Bootstrap | RayHost]]:
    """Key to host, bootstraps first."""
    yield from keyed_bootstraps(cluster)
    yield from keyed_nodes(cluster)


def keyed_bootstraps(cluster: Cluster) -> Iterator[tuple[str, Bootstrap]]:
    """Key to bootstrap."""
    if isinstance(cluster.bootstrap, Bootstrap):
        yield "cluster.bootstrap", cluster.bootstrap
    else:
        for index, bootstrap in enumerate(cluster.bootstraps):
            yield f"cluster.bootstrap[{index}]", bootstrap


def keyed_nodes(cluster: Cluster) -> Iterator[tuple[str, RayHost]]:
    """Key to node, cloud nodes first."""
    for index, node in enumerate(cluster.cloud):
        yield f"cluster.cloud[{index}]", node
    for index, edge in enumerate(cluster.edges):
        yield f"cluster.edges[{index}]", edge
