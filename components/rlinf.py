"""The RLinf `cluster:` block, rendered from the settings. Pure, and without Pulumi.

The rules are those of `ClusterConfig` in RLinf 0.3.0. Ranks and placements are always quoted: YAML 1.1, which
RLinf's loader reads, takes `1:30` for the number 90.
"""

from __future__ import annotations

from io import StringIO

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString as Quoted

from components.plan import Plan
from config.models import Rlinf


def render_config(plan: Plan, rlinf: Rlinf) -> str:
    """The YAML text of the `cluster:` block that RLinf takes as it is."""
    ranks: dict[str, list[int]] = {}
    for node in plan.nodes:
        if node.group is not None and node.rank is not None:
            ranks.setdefault(node.group, []).append(node.rank)
    document = {
        "cluster": {
            "num_nodes": len(plan.nodes),
            "node_groups": [
                {"label": group, "node_ranks": Quoted(rank_ranges(members))} for group, members in ranks.items()
            ],
            "component_placement": {
                component: {"node_group": where.node_group, "placement": Quoted(where.placement)}
                for component, where in rlinf.component_placement.items()
            },
        }
    }
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 10_000
    text = StringIO()
    yaml.dump(document, text)  # pyright: ignore[reportUnknownMemberType]  # ruamel.yaml's stream is untyped
    return text.getvalue()


def rank_ranges(ranks: list[int]) -> str:
    """Ascending ranks in RLinf's notation: `[0, 1, 2, 5]` is `0-2,5`."""
    spans: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
