"""Every shape of a `cluster:` block that occurs in RLinf's own configs can be written in our settings.

The shapes are those of all 369 configs of RLinf at commit a3816b59 (August 2026, a month after 0.3.0), as
`python -m tests.proof.shapes` lists them; for each there are settings here, with hosts and numbers of our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from components.rlinf import render_config
from config.load import parse
from tests.proof.drafts import Settings
from tests.proof.handmade import machine, on, settings
from tests.proof.naive import naive
from tests.proof.rlinf import Accepted, Oracle
from tests.proof.shapes import shape

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- shapes -->\n", "<!-- end -->\n"

FRANKA: Settings = {"type": "Franka", "robot_ip": "172.16.0.2"}
DOSW1: Settings = {
    "type": "DOSW1",
    "robot_url": "127.0.0.1",
    "left_arm_port": 50061,
    "right_arm_port": 50063,
    "left_lead_port": 50060,
    "right_lead_port": 50062,
    "camera_serials": ["0412", "0413"],
}
DOSW1_FIELDS = "camera_serials, left_arm_port, left_lead_port, right_arm_port, right_lead_port, robot_url"
ZED_AND_ROBOTIQ: Settings = {
    **FRANKA,
    "camera_serials": ["0020513"],
    "camera_type": "zed",
    "gripper_type": "robotiq",
    "gripper_connection": "/dev/ttyUSB1",
    "controller_host": "h1",
}
DUAL_FRANKA: Settings = {
    "type": "DualFranka",
    "left_robot_ip": "172.16.0.2",
    "right_robot_ip": "172.16.1.2",
    "base_camera_serials": ["0301"],
    "base_camera_type": "realsense",
    "left_camera_serials": ["/dev/video2"],
    "left_camera_type": "lumos",
    "right_camera_serials": ["/dev/video4"],
    "right_camera_type": "lumos",
    "left_gripper_type": "robotiq",
    "right_gripper_type": "robotiq",
    "left_gripper_connection": "/dev/ttyUSB0",
    "right_gripper_connection": "/dev/ttyUSB1",
}
DUAL_FRANKA_FIELDS = (
    "base_camera_serials, base_camera_type, left_camera_serials, left_camera_type, left_controller_node_rank, "
    "left_gripper_connection, left_gripper_type, left_robot_ip, right_camera_serials, right_camera_type, "
    "right_controller_node_rank, right_gripper_connection, right_gripper_type, right_robot_ip"
)
DYNAMIC: Settings = {
    "auto_scheduler": True,
    "use_pre_process_policy": False,
    "use_wait_before_last_iter_policy": False,
    "recreate_nccl_groups": False,
}
DYNAMIC_NAMES = "auto_scheduler | recreate_nccl_groups | use_pre_process_policy | use_wait_before_last_iter_policy"
EMULATION: Settings = {
    "enabled": True,
    "symmetric": False,
    "crossdc_pairs": [{"src": ["Env:0-1"], "dst": ["Actor:0-1"], "delay_ms": 25}],
    "bandwidth_groups": [{"members": ["Env:0-1"], "bandwidth_mbps": 200}],
}
EMULATION_NAMES = "net_emulation (bandwidth_groups, crossdc_pairs, enabled, symmetric)"


def dual(first: str, second: str) -> Settings:
    """Two arms whose controllers run on these hosts."""
    return {**DUAL_FRANKA, "left_controller_host": first, "right_controller_host": second}


@dataclass(frozen=True)
class Example:
    """A shape, where RLinf has it, and settings of ours that are rendered with it."""

    shape: str
    count: int
    """How many of RLinf's configs have it."""
    such_as: str
    """One of them."""
    settings: Settings


EXAMPLES = [
    Example(
        "one node | components on nodes: all",
        *(141, "examples/embodiment/config/libero_10_ppo_gr00t.yaml"),
        settings([machine(4)], {"actor,env,rollout": "all"}),
    ),
    Example(
        "one node | components on nodes: N-N",
        *(70, "examples/embodiment/config/libero_spatial_async_ppo_openpi.yaml"),
        settings([machine(4)], {"env, rollout": "0-2"}),
    ),
    Example(
        "one node | components on nodes: N",
        *(33, "examples/embodiment/config/frankasim_ppo_mlp.yaml"),
        settings([machine()], {"actor,env,rollout": 0}),
    ),
    Example(
        "one node | component on nodes: N",
        *(27, "examples/embodiment/config/d4rl_iql_antmaze.yaml"),
        settings([machine(2)], {"actor": "0-0", "env": 1, "rollout": 1}),
    ),
    Example(
        "one node | component on nodes: N-N",
        *(17, "examples/embodiment/config/libero_spatial_dagger_openpi.yaml"),
        settings([machine(4)], {"actor": "0-1", "env": "2-3", "rollout": "2-3"}),
    ),
    Example(
        "one node | component on nodes: all",
        *(13, "examples/sft/config/droid_sft_dreamzero_14b.yaml"),
        settings([machine(2)], {"actor": "all"}),
    ),
    Example(
        "one node | component on nodes: all | components on nodes: all",
        *(4, "examples/agent/wideseek_r1/config/base_eval.yaml"),
        settings([machine(2)], {"actor,reward": "all", "rollout": "all"}),
    ),
    Example(
        "one node | component on nodes: N-N | component on nodes: all",
        *(4, "examples/embodiment/config/behavior_ppo_openpi.yaml"),
        settings([machine(4)], {"rollout": "0-1", "env": "2-3", "actor": "all"}),
    ),
    Example(
        "one node | component on nodes: N | component on nodes: N-N",
        *(3, "tests/e2e_tests/agent/coding_online_rl/qwen2.5-1.5b-ppo.yaml"),
        settings([machine(4)], {"rollout": "0-1", "inference": 2, "actor": 3}),
    ),
    Example(
        "one node | component on nodes: N-N | components on nodes: all",
        *(2, "examples/agent/wideseek_r1/config/eval_qwen3_widesearch_local_judge.yaml"),
        settings([machine(4)], {"actor,reward": "all", "rollout": "0-1", "rollout_judge": "2-3"}),
    ),
    Example(
        "one node | component on nodes: N | component on nodes: N-N:N",
        *(2, "examples/embodiment/config/maniskill_ppo_mlp_vlm_trend_reward_sglang.yaml"),
        settings([machine(2)], {"actor": "0-0", "env": "0-0", "reward_server": "0-1:0"}),
    ),
    Example(
        "one node | component on nodes: N | component on nodes: all",
        *(2, "examples/embodiment/config/maniskill_rlt_stage2_ac_mlp.yaml"),
        settings([machine(2)], {"actor": "0-0", "env": "all", "rollout": "all"}),
    ),
    Example(
        f"one node | component on nodes: N | component on nodes: N-N | component on nodes: all | {DYNAMIC_NAMES}",
        *(2, "tests/e2e_tests/dynamic_scheduler/qwen2.5-1.5b-grpo-dynamic-mg-sgl.yaml"),
        settings([machine(4)], {"actor": 0, "rollout": "1-2", "inference": 3, "reward": "all"}, options=DYNAMIC),
    ),
    Example(
        f"one node | component on nodes: N-N | component on nodes: all | {DYNAMIC_NAMES}",
        *(1, "examples/reasoning/config/math/qwen2.5-1.5b-grpo-megatron-dynamic.yaml"),
        settings(
            [machine(8)], {"actor": "0-1", "rollout": "2-5", "inference": "6-7", "reward": "all"}, options=DYNAMIC
        ),
    ),
    Example(
        "one node | component on nodes: N | component on nodes: N:N-N | component on nodes: N:N-N,N:N-N",
        *(2, "tests/e2e_tests/embodied/maniskill_sac_mlp_async_decoupled.yaml"),
        settings([machine(2)], {"actor": 0, "rollout": "1:0-1", "env": "0:0-1, 1:2-4"}),
    ),
    Example(
        f"one node | component on nodes: N | component on nodes: N:N-N | {EMULATION_NAMES}",
        *(1, "tests/e2e_tests/embodied/maniskill_sac_mlp_async_decoupled_with_delay.yaml"),
        settings([machine(2)], {"actor": 0, "rollout": "1:0-1"}, options={"net_emulation": EMULATION}),
    ),
    Example(
        f"one node | component on nodes: N-N | {EMULATION_NAMES}",
        *(1, "examples/embodiment/config/realsimulator_robotwin_adjust_bottle_dagger_openpi.yaml"),
        settings([machine(4)], {"actor": "0-1", "env": "2-3"}, options={"net_emulation": EMULATION}),
    ),
    Example(
        "one node | components on nodes: N-N | tracer (enable, output_file)",
        *(1, "tests/e2e_tests/embodied/libero_spatial_ppo_openpi.yaml"),
        settings([machine(2)], {"actor,env": "0-1"}, options={"tracer": {"enable": True, "output_file": None}}),
    ),
    Example(
        "one node | component on group: N-N | component on nodes: N-N | group of one, with env_vars",
        *(2, "examples/embodiment/config/isaaclab_franka_stack_cube_ppo_gr00t.yaml"),
        settings(
            [machine(4, group="rollout")],
            {"env": "0-3", "rollout": on("rollout", "0-3"), "actor": "0-3"},
            node_groups={"rollout": {"env_configs": [{"env_vars": {"OMP_NUM_THREADS": 16}}]}},
        ),
    ),
    Example(
        "several nodes | components on nodes: all",
        *(6, "examples/reasoning/config/math/qwen2.5-32b-grpo-megatron.yaml"),
        settings([machine(8, group="cloud") for _ in range(16)], {"actor,rollout,reward": "all"}),
    ),
    Example(
        "several nodes | component on nodes: all",
        *(1, "examples/sft/config/qwen3_vl_moe_megatron_sft_vlm.yaml"),
        settings([machine(8), machine(8)], {"actor": "all"}),
    ),
    Example(
        "several nodes | component on nodes: N-N",
        *(2, "examples/reasoning/config/math/qwen2.5-1.5b-grpo-fsdp-pipeline.yaml"),
        settings([machine(8), machine(8), machine(8)], {"rollout": "0-7", "inference": "8-15", "actor": "16-23"}),
    ),
    Example(
        "one node | component on group: N | group of one, with 1 Franka (robot_ip)",
        *(6, "examples/embodiment/config/realworld_collect_data.yaml"),
        settings([machine(group="franka", robots=[FRANKA])], {"env": on("franka", 0)}),
    ),
    Example(
        "several nodes | component on group: N | group of one | group of one, with 1 Franka (robot_ip)",
        *(13, "examples/embodiment/config/realworld_peginsertion_rlpd_cnn_async.yaml"),
        settings(
            [machine(1, group=4090), machine(robots=[FRANKA])],
            {"actor": on(4090, 0), "rollout": on(4090, 0), "env": on("edge", 0)},
        ),
    ),
    Example(
        "several nodes | component on group: N | group of one, with python_interpreter_path | "
        "group of one, with python_interpreter_path, with 1 Franka (robot_ip)",
        *(2, "examples/embodiment/config/realworld_charger_sac_cnn_async.yaml"),
        settings(
            [machine(1), machine(group="franka", robots=[FRANKA])],
            {"actor": on("cloud", "0-0"), "env": on("franka", 0)},
            node_groups={
                "cloud": {"env_configs": [{"python_interpreter_path": "/opt/venvs/train/bin/python"}]},
                "franka": {"env_configs": [{"hosts": ["h1"], "python_interpreter_path": "/opt/venvs/arm/bin/python"}]},
            },
        ),
    ),
    Example(
        "several nodes | component on group: N | component on group: N-N | component on group: N:N-N | group of one | "
        "group of several, with 2 Franka (robot_ip)",
        *(1, "examples/embodiment/config/realworld_peginsertion_rlpd_cnn_async_2arms.yaml"),
        settings(
            [machine(1), machine(robots=[FRANKA]), machine(robots=[{**FRANKA, "robot_ip": "172.16.1.2"}])],
            {"actor": on("cloud", 0), "rollout": on("cloud", "0:0-1"), "env": on("edge", "0-1")},
        ),
    ),
    Example(
        "several nodes | component on group: N | group of one | "
        "group of one, with 1 Franka (controller_node_rank, disable_validate, robot_ip)",
        *(1, "examples/embodiment/config/realworld_rlt_stage2_ac_mlp.yaml"),
        settings(
            [machine(1), machine(robots=[{**FRANKA, "controller_host": "h1", "disable_validate": False}])],
            {"actor": on("cloud", 0), "env": on("edge", 0)},
        ),
    ),
    Example(
        "several nodes | component on group: N | group of several, with 1 Franka (camera_serials, camera_type, "
        "controller_node_rank, gripper_connection, gripper_type, robot_ip)",
        *(1, "examples/embodiment/config/realworld_collect_data_zed_robotiq.yaml"),
        settings(
            [machine(group="franka", robots=[ZED_AND_ROBOTIQ]), machine(group="franka")], {"env": on("franka", 0)}
        ),
    ),
    Example(
        f"several nodes | component on group: N | group of several, with 1 DualFranka ({DUAL_FRANKA_FIELDS})",
        *(3, "examples/embodiment/config/realworld_dual_franka_collect_data_pico.yaml"),
        settings([machine(group="arms", robots=[dual("h0", "h1")]), machine(group="arms")], {"env": on("arms", 0)}),
    ),
    Example(
        "several nodes | component on group: N | group of one | "
        f"group of several, with 1 DualFranka ({DUAL_FRANKA_FIELDS})",
        *(1, "examples/embodiment/config/realworld_dual_franka_dagger_openpi.yaml"),
        settings(
            [machine(1), machine(robots=[dual("h1", "h2")]), machine()],
            {"actor": on("cloud", 0), "env": on("edge", 0)},
        ),
    ),
    Example(
        f"one node | component on group: N | group of one, with 1 DOSW1 ({DOSW1_FIELDS})",
        *(1, "examples/embodiment/config/dosw1_collect_data.yaml"),
        settings([machine(robots=[DOSW1])], {"env": on("cloud", 0)}),
    ),
    Example(
        f"several nodes | component on group: N | group of one | group of one, with 1 DOSW1 ({DOSW1_FIELDS})",
        *(2, "examples/embodiment/config/dosw1_pick_sac_flow.yaml"),
        settings([machine(1), machine(robots=[DOSW1])], {"actor": on("cloud", 0), "env": on("edge", 0)}),
    ),
    Example(
        "several nodes | component on group: N | group of one | group of one, with 1 Turtle2 ()",
        *(1, "examples/embodiment/config/realworld_button_turtle2_sac_cnn.yaml"),
        settings(
            [machine(1), machine(robots=[{"type": "Turtle2"}])], {"actor": on("cloud", "0-0"), "env": on("edge", 0)}
        ),
    ),
]


def by_file(example: Example) -> str:
    return Path(example.such_as).stem


@pytest.mark.parametrize("example", EXAMPLES, ids=by_file)
class TestShapesOfRlinfsOwnConfigs:
    """A config that RLinf ships can be had from settings."""

    def test_settings_are_rendered_with_the_shape(self, example: Example) -> None:
        block = YAML(typ="safe").load(render_config(parse(example.settings)))["cluster"]
        assert shape(block) == example.shape

    def test_rlinf_takes_them(self, example: Example, oracle: Oracle) -> None:
        _, machines = naive(example.settings)
        answer = oracle.ask(render_config(parse(example.settings)), machines)
        assert isinstance(answer, Accepted), answer


def test_no_shape_is_listed_twice_and_all_configs_are_counted() -> None:
    shapes = [example.shape for example in EXAMPLES]
    assert len(set(shapes)) == len(shapes)
    assert sum(example.count for example in EXAMPLES) == 369


def test_the_readme_lists_the_shapes(pytestconfig: pytest.Config) -> None:
    table = "| shape | configs of RLinf | such as |\n|---|--:|---|\n" + "".join(
        f"| {example.shape.replace(' | ', '; ')} | {example.count} | `{example.such_as}` |\n" for example in EXAMPLES
    )
    text = README.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    expected = f"{before}{BEGIN}{table}{END}{after}"
    if pytestconfig.getoption("--rewrite-golden"):
        README.write_text(expected)
    assert README.read_text() == expected, "the table differs; write it anew with --rewrite-golden"
