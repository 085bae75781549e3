"""The oracle answers as RLinf does on a real Ray, whose part it plays for the other tests of this suite.

A Ray of three nodes runs for this on loopback addresses. RLinf's `Cluster`, unchanged, connects to it, and its own
actors probe the nodes. The configs below go through everything that a stand-in of the oracle touches: the order of
the nodes, their accelerators, environments, cameras and interpreters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.proof.rlinf import Accepted, Answer, Machine, Oracle, Refused, ask_real_cluster

MACHINES = [
    Machine("127.0.0.11", 0, accelerators=4),
    Machine("127.0.0.12", 1, accelerators=2),
    Machine("127.0.0.13", 2, env={"ROBOT_IP": "172.16.0.7"}),
]

GROUPS = """
  num_nodes: 3
  node_groups:
    - label: gpu
      node_ranks: "0-1"
      env_configs:
        - node_ranks: "1"
          env_vars: [{NAME: "value"}]
          python_interpreter_path: PYTHON
    - label: robot
      node_ranks: "2"
      hardware:
        type: Franka
        configs:
          - {node_rank: 2, camera_serials: ["20"], robot_ip: "127.0.0.1"}
"""

CONFIGS = {
    "accelerators of several nodes are numbered in the order of the nodes' ranks": """
cluster:
  num_nodes: 3
  component_placement:
    actor,rollout: all
    env: {node_group: node, placement: "1-2:0-5"}
""",
    "accelerators beyond the last are refused": """
cluster:
  num_nodes: 3
  component_placement: {actor: "0-6"}
""",
    "a robot is the resource of its group, with environment and interpreter of the others": f"""
cluster: {GROUPS}
  component_placement:
    actor: {{node_group: gpu, placement: "0-3:0,4-5:1"}}
    env: {{node_group: robot, placement: "0:0-1"}}
""",
    "a process can't have accelerators of two nodes": f"""
cluster: {GROUPS}
  component_placement:
    actor: {{node_group: gpu, placement: "0-5:0"}}
""",
    "a camera that is not plugged in is refused": f"""
cluster: {GROUPS.replace('"20"', "20")}
  component_placement:
    env: {{node_group: robot, placement: "0"}}
""",
    "what a robot's config leaves out comes from the environment of its node": f"""
cluster: {GROUPS.replace(', robot_ip: "127.0.0.1"', "")}
  component_placement:
    env: {{node_group: robot, placement: "0"}}
""",
    "accelerators of a node are ignored on request, and those of a robot's node are seen": """
cluster:
  num_nodes: 2
  node_groups:
    - {label: a, node_ranks: "0", ignore_hardware: true}
    - {label: b, node_ranks: "1", hardware: {type: Turtle2, configs: [{node_rank: 1}]}}
  component_placement:
    actor: {node_group: a, placement: "0:0-2"}
    env: {node_group: "b,a", placement: "0"}
    rollout: "0-5"
""",
    "a rank outside the cluster is refused": f"""
cluster: {GROUPS.replace('"0-1"', '"0-3"')}
  component_placement: {{actor: "0"}}
""",
    "two groups of one label are refused": f"""
cluster: {GROUPS.replace("label: robot", "label: gpu")}
  component_placement: {{actor: "0"}}
""",
}


@pytest.fixture(scope="module")
def answers(rlinf_python: Path) -> dict[str, Answer]:
    """What RLinf makes of each config on a real Ray."""
    configs = [with_python(text) for text in CONFIGS.values()]
    return dict(zip(CONFIGS, ask_real_cluster(rlinf_python, configs, MACHINES), strict=True))


def with_python(config: str) -> str:
    """An interpreter that exists, since RLinf looks."""
    return config.replace("PYTHON", sys.executable)


@pytest.mark.slow
class TestAgainstARealRay:
    """Where the two differ, the oracle proves nothing."""

    @pytest.mark.parametrize("case", CONFIGS)
    def test_the_oracle_says_what_rlinf_says(self, oracle: Oracle, answers: dict[str, Answer], case: str) -> None:
        here, there = oracle.ask(with_python(CONFIGS[case]), MACHINES), answers[case]
        if isinstance(there, Accepted):
            assert here == there
        else:
            assert isinstance(here, Refused)
            # An actor's error comes back as Ray's, with RLinf's own words as its last line.
            assert here.error.partition(": ")[2].strip() in there.error

    def test_both_outcomes_are_among_the_cases(self, answers: dict[str, Answer]) -> None:
        refused = [case for case, answer in answers.items() if isinstance(answer, Refused)]
        assert refused == [case for case in CONFIGS if case.endswith("refused") or "can't" in case]
