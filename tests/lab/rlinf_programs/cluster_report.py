"""What RLinf itself makes of a rendered config: its nodes, and where it would place each component.

    cluster_report.py CONFIG

Runs on the head in the environment that Ray was started in, RAY_ADDRESS included. CONFIG is a YAML file with a
`cluster:` key, taken as it is. The last line of standard output is JSON:

    {"nodes": [{"rank": 0, "ip": "10.10.0.10"}, …],
     "placements": {"actor": [{"process_rank": 0, "node_rank": 0, "ip": "10.10.0.10", "node_group": "cloud"}], …}}

It starts no workers. It waits for the config's `num_nodes` without a limit, as RLinf does: give it one.
"""

from __future__ import annotations

import json
import sys
from typing import cast

import ray
from omegaconf import DictConfig, OmegaConf
from rlinf.scheduler import Cluster
from rlinf.utils.placement import HybridComponentPlacement


def main() -> None:
    """Reads the config, joins the cluster, prints the report."""
    config = cast(DictConfig, OmegaConf.load(sys.argv[1]))
    cluster = Cluster(cluster_cfg=config.cluster)
    components = HybridComponentPlacement(config, cluster)
    placements = {
        component: [
            {
                "process_rank": placement.rank,
                "node_rank": placement.cluster_node_rank,
                "ip": cluster.get_node_ip(placement.cluster_node_rank),
                "node_group": placement.node_group_label,
            }
            for placement in components.get_strategy(component).get_placement(cluster)
        ]
        for component in components.components
    }
    nodes = [{"rank": rank, "ip": cluster.get_node_ip(rank)} for rank in range(cluster.num_nodes)]
    ray.shutdown()  # its processes log to our standard output: the report comes last
    print(json.dumps({"nodes": nodes, "placements": placements}))


if __name__ == "__main__":
    main()
