"""Prints the nodes that Ray's head holds for alive: their addresses, separated by commas.

Runs on the head with Ray's own Python, in Ray's own environment. Asks the GCS alone, so that it is no driver, and
leaves no trace in Ray.
"""

# Ray's API is untyped in part.
# pyright: basic

from __future__ import annotations

import os

from ray._raylet import GcsClient  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module


def main() -> None:
    """Asks and prints."""
    nodes = GcsClient(address=os.environ["RAY_ADDRESS"]).get_all_node_info(timeout=10)
    alive = 0  # `GcsNodeInfo.ALIVE` in Ray 2.60.0
    print(",".join(sorted(node.node_manager_address for node in nodes.values() if node.state == alive)))


if __name__ == "__main__":
    main()
