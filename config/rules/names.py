"""Names and ranks: each once, and ranks without holes."""

from __future__ import annotations

from collections.abc import Iterator

from config.faults import Fault
from config.models import Cluster
from config.rules.hosts import keyed_bootstraps, keyed_hosts, keyed_nodes


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with names, ranks and which hosts take part."""
    yield from _names(cluster)
    yield from _present(cluster)
    yield from _ranks(cluster)


def _names(cluster: Cluster) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for key, host in keyed_hosts(cluster):
        if host.name in first:
            rule = f"every host has a name of its own; {first[host.name]} has this one"
            yield Fault(f"{key}.name", host.name, rule, "rename one of the two")
        first.setdefault(host.name, key)


def _present(cluster: Cluster) -> Iterator[Fault]:
    if not any(node.counts for node in cluster.cloud):
        rule = "at least one cloud node takes part: the first is the Ray head"
        yield Fault("cluster.cloud", None, rule, "remove enabled: false or lost: true from one, or add another")
    bootstraps = list(keyed_bootstraps(cluster))
    if bootstraps and all(bootstrap.lost for _, bootstrap in bootstraps):
        rule = "at least one bootstrap is there: the others join the overlay at it"
        yield Fault(f"{bootstraps[0][0]}.lost", "true", rule, "add the bootstrap that takes its place")


def _ranks(cluster: Cluster) -> Iterator[Fault]:
    counting = [(key, node) for key, node in keyed_nodes(cluster) if node.counts]
    head = next((node for node in cluster.cloud if node.counts), None)
    first: dict[int, str] = {}
    for key, node in counting:
        if node.rank is None:
            continue
        if node is head and node.rank != 0:
            rule = "the first cloud node is the Ray head, and the head has rank 0"
            yield Fault(f"{key}.rank", str(node.rank), rule, "write 0, leave it out, or list another node first")
        elif node is not head and node.rank == 0 and head is not None:
            rule = f"rank 0 is the head's, the first cloud node: {head.name}"
            yield Fault(f"{key}.rank", "0", rule, "write another rank, leave it out, or list this node first")
        elif node.rank in first:
            rule = f"every node has a rank of its own; {first[node.rank]} has this one"
            yield Fault(f"{key}.rank", str(node.rank), rule, "change one of the two, or leave it out")
        elif node.rank >= len(counting):
            rule = f"ranks have no holes: {len(counting)} nodes take part, so they go from 0 to {len(counting) - 1}"
            yield Fault(f"{key}.rank", str(node.rank), rule, "write a rank in that range, or leave it out")
        first.setdefault(node.rank, node.name)
