"""What RLinf's own parser refuses (`ClusterConfig` in RLinf 0.3.0) is refused here, before anything is created."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import parse
from config.ranks import groups
from tests.example_settings import guide, guide_with_edges
from tests.settings_faults import faults, only_fault

FRANKA = {"type": "Franka", "robot_ip": "192.0.2.2"}


def with_robots(*robots: dict[str, Any]) -> dict[str, Any]:
    raw = guide()
    raw["edges"][0]["hardware"] = list(robots)
    return raw


class TestResources:
    """What is placed on: declared robots, else accelerators if any host of the group has one, else the hosts."""

    def found(self, raw: dict[str, Any], label: str) -> tuple[str | None, list[int]]:
        group = groups(parse(raw))[label]
        return group.type, [resource.node_rank for resource in group.resources]

    def test_hosts_count_where_there_is_nothing_else(self) -> None:
        assert self.found(guide_with_edges(2), "edge") == (None, [1, 2])

    def test_hosts_without_accelerators_count_for_nothing_beside_one_that_has_some(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][1]["gpus"] = 2
        assert self.found(raw, "edge") == ("Accelerator", [2, 2])

    def test_robots_go_before_accelerators(self) -> None:
        raw = guide_with_edges(2)
        raw["edges"][0]["gpus"] = 1
        raw["edges"][1]["hardware"] = [FRANKA, {**FRANKA, "robot_ip": "192.0.2.3"}]
        assert self.found(raw, "edge") == ("Franka", [2, 2])

    def test_accelerators_can_be_ignored(self) -> None:
        raw = guide()
        raw["rlinf"]["node_groups"] = {"cloud": {"ignore_hardware": True}}
        raw["rlinf"]["component_placement"]["actor"]["placement"] = "0"
        assert self.found(raw, "cloud") == (None, [0])

    def test_rlinfs_own_groups_hold_every_node(self) -> None:
        raw = guide_with_edges(2)
        raw["edges"][0]["hardware"] = [FRANKA]
        assert self.found(raw, "cluster") == ("Accelerator", [0, 0, 0, 0])
        assert self.found(raw, "node") == (None, [0, 1, 2])

    def test_a_host_can_be_in_several_groups_and_has_a_robot_in_one(self) -> None:
        raw = guide()
        raw["edges"][0] |= {"group": ["edge", "arm"], "gpus": 1, "hardware": [{**FRANKA, "group": "arm"}]}
        assert self.found(raw, "edge") == ("Accelerator", [1])
        assert self.found(raw, "arm") == ("Franka", [1])


class TestPlacements:
    """Both of RLinf's forms, with every group that RLinf knows."""

    @pytest.mark.parametrize(
        "where",
        [
            "0-3",
            2,
            "all",
            {"placement": "0-3"},
            {"node_group": "cluster", "placement": 0},
            {"node_group": "node", "placement": "0-1:0-9"},
            {"node_group": "cloud,edge", "placement": "0-1"},
            {"node_group": ["cloud", "edge"], "placement": "0-1"},
        ],
    )
    def test_a_form_is_accepted(self, where: object) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"]["actor"] = where
        parse(raw)

    @pytest.mark.parametrize(
        ("where", "key"),
        [
            ("0-4", "cluster.rlinf.component_placement.actor"),
            ({"node_group": "cloud", "placement": "0-4"}, "cluster.rlinf.component_placement.actor.placement"),
            ({"node_group": "node", "placement": 2}, "cluster.rlinf.component_placement.actor.placement"),
            ({"node_group": "cloud,edgy", "placement": 0}, "cluster.rlinf.component_placement.actor.node_group"),
            ({"node_group": "cloud"}, "cluster.rlinf.component_placement.actor.placement"),
            ({"node_group": "cloud", "placement": 0.5}, "cluster.rlinf.component_placement.actor.placement"),
            (None, "cluster.rlinf.component_placement.actor"),
        ],
    )
    def test_what_does_not_fit_is_refused_under_its_key(self, where: object, key: str) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"]["actor"] = where
        assert only_fault(raw).key == key

    def test_the_nearest_group_is_named(self) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"]["actor"]["node_group"] = "clout"
        assert only_fault(raw).fix == "write `cloud`; the groups are: cloud, edge"

    def test_at_least_one_component_is_placed(self) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"] = {}
        assert only_fault(raw).key == "cluster.rlinf.component_placement"

    @pytest.mark.parametrize("key", ["actor,actor", "critic, actor"])
    def test_a_component_is_placed_once(self, key: str) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"][key] = "0"
        assert "a component is placed once" in faults(raw)[0].rule

    @pytest.mark.parametrize("key", ["", "actor,", "a b", "actor:0", "${x}"])
    def test_a_component_has_a_name(self, key: str) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"][key] = "0"
        assert only_fault(raw).rule.startswith("must match")


class TestLabels:
    """Labels are unique by construction: a group consists of the hosts that name it."""

    @pytest.mark.parametrize("label", ["cluster", "node"])
    def test_rlinfs_own_are_refused(self, label: str) -> None:
        raw = guide()
        raw["edges"][0]["group"] = ["edge", label]
        assert only_fault(raw).rule == "this label is RLinf's own"

    def test_a_number_is_a_label(self) -> None:
        raw = guide()
        raw["cloud"][0]["group"] = 4090
        raw["rlinf"]["component_placement"]["actor"]["node_group"] = 4090
        assert parse(raw).cloud[0].groups == ("4090",)

    @pytest.mark.parametrize("label", ["a,b", "", "-a", "a b", "${a}", "a\n", True])
    def test_what_rlinf_would_read_as_something_else_is_refused(self, label: object) -> None:
        raw = guide()
        raw["edges"][0]["group"] = label
        assert faults(raw)[0].key == "cluster.edges[0].group"

    def test_a_host_is_in_a_group_once(self) -> None:
        raw = guide()
        raw["edges"][0]["group"] = ["edge", "edge"]
        assert only_fault(raw).rule == "a host is in a group once"

    def test_settings_are_for_a_group_that_exists(self) -> None:
        raw = guide()
        raw["rlinf"]["node_groups"] = {"edges": {}}
        assert only_fault(raw).fix == "write `edge`; the groups are: cloud, edge"


class TestEnvironments:
    """`env_configs`, with hosts in place of ranks."""

    def of(self, *environments: dict[str, Any]) -> dict[str, Any]:
        raw = guide_with_edges(2)
        raw["rlinf"]["node_groups"] = {"edge": {"env_configs": list(environments)}}
        return raw

    def test_they_are_for_hosts_of_the_group(self) -> None:
        fault = only_fault(self.of({"hosts": ["cloud-1"]}))
        assert fault.key == "cluster.rlinf.node_groups.edge.env_configs[0].hosts"
        assert fault.fix == "write hosts of the group: edge-1, edge-2"

    @pytest.mark.parametrize("first", [{"hosts": ["edge-1"]}, {}])
    def test_a_host_has_one(self, first: dict[str, Any]) -> None:
        assert "a host has one environment in a group" in only_fault(self.of(first, {"hosts": ["edge-1"]})).rule

    def test_a_variable_stands_once_in_a_group(self) -> None:
        raw = self.of(
            {"hosts": ["edge-1"], "env_vars": {"A": "canary"}},
            {"hosts": ["edge-2"], "env_vars": {"A": "other"}},
        )
        fault = only_fault(raw)
        assert fault.key.endswith("env_configs[1].env_vars.A")
        assert fault.value is None
        assert "RLinf takes a variable once in a group" in fault.rule

    def test_numbers_become_texts(self) -> None:
        cluster = parse(self.of({"env_vars": {"OMP_NUM_THREADS": 32}}))
        assert cluster.rlinf.node_groups["edge"].env_configs[0].env_vars == {"OMP_NUM_THREADS": "32"}

    @pytest.mark.parametrize("value", ["${oc.env:HOME}", "???", True, "a\nb"])
    def test_what_rlinfs_loader_reads_as_something_else_is_refused(self, value: object) -> None:
        fault = only_fault(self.of({"env_vars": {"A": value}}))
        assert fault.key.endswith("env_vars.A")
        assert fault.value is None

    def test_ranks_are_not_written(self) -> None:
        fault = only_fault(self.of({"node_ranks": "1-2"}))
        assert fault.fix == "write hosts with the names of the hosts"

    @pytest.mark.parametrize(
        ("key", "fix"), [("label", "remove it"), ("hardware", "move it to the host's own hardware")]
    )
    def test_what_stands_elsewhere_is_named(self, key: str, fix: str) -> None:
        raw = guide()
        raw["rlinf"]["node_groups"] = {"edge": {key: "x"}}
        assert only_fault(raw).fix == fix


class TestVariablesOfThisProgram:
    """What this program sets on every node is nobody else's to set."""

    @pytest.mark.parametrize("name", ["RLINF_NODE_RANK", "RLINF_COMM_NET_DEVICES", "RAY_ADDRESS", "PATH"])
    def test_it_is_refused_wherever_it_stands(self, name: str) -> None:
        raw = guide()
        raw["ray"] = {"env": {name: "canary"}}
        raw["edges"][0]["env"] = {name: "canary"}
        raw["rlinf"]["node_groups"] = {"edge": {"env_configs": [{"env_vars": {name: "canary"}}]}}
        found = faults(raw)
        assert {fault.rule for fault in found} == {"this program sets this variable itself"}
        assert len(found) == 3


class TestRobots:
    """Every hardware type of RLinf 0.3.0, with its own fields."""

    @pytest.mark.parametrize(
        "robot",
        [
            {"type": "Franka"},
            {
                "type": "Franka",
                "robot_ip": "192.0.2.2",
                "camera_serials": ["322142001230"],
                "camera_type": "zed",
                "gripper_type": "robotiq",
                "gripper_connection": "/dev/ttyUSB0",
                "controller_host": "cloud-1",
                "disable_validate": True,
            },
            {
                "type": "DualFranka",
                "left_robot_ip": "192.0.2.2",
                "right_robot_ip": "2001:db8::2",
                "left_camera_serials": ["1"],
                "right_camera_serials": ["2"],
                "base_camera_serials": ["3"],
                "base_camera_type": "realsense",
                "left_camera_type": "lumos",
                "right_camera_type": "lumos",
                "left_gripper_type": "robotiq",
                "right_gripper_type": "franka",
                "left_gripper_connection": "/dev/ttyUSB0",
                "left_controller_host": "edge-1",
                "right_controller_host": "cloud-1",
            },
            {"type": "GimArm", "can_interface": "can1", "arm_variant": "gim_arm", "enable_gripper": False},
            {"type": "DOSW1", "robot_url": "127.0.0.1", "left_arm_port": 50061, "camera_serials": []},
            {"type": "Turtle2"},
        ],
    )
    def test_a_robot_is_accepted(self, robot: dict[str, Any]) -> None:
        parse(with_robots(robot))

    @pytest.mark.parametrize("robot", [{"type": "franka"}, {"robot_ip": "192.0.2.2"}, {"type": 7}])
    def test_an_unknown_type_is_refused_with_those_that_are_known(self, robot: dict[str, Any]) -> None:
        assert "Franka, DualFranka, GimArm, DOSW1, Turtle2" in only_fault(with_robots(robot)).rule

    @pytest.mark.parametrize(
        ("robot", "field"),
        [
            ({"type": "Franka", "robot_ip": "ROBOT_IP"}, "robot_ip"),
            ({"type": "Franka", "camera_type": "webcam"}, "camera_type"),
            ({"type": "Franka", "gripper_type": "hand"}, "gripper_type"),
            ({"type": "DualFranka", "right_robot_ip": "192.0.2"}, "right_robot_ip"),
            ({"type": "GimArm", "arm_variant": "gim_arm_s"}, "arm_variant"),
            ({"type": "GimArm", "camera_type": "lumos"}, "camera_type"),
            ({"type": "DOSW1", "left_arm_port": 0}, "left_arm_port"),
            ({"type": "Turtle2", "robot_ip": "192.0.2.2"}, "robot_ip"),
        ],
    )
    def test_a_field_that_rlinf_would_refuse_is_refused(self, robot: dict[str, Any], field: str) -> None:
        assert only_fault(with_robots(robot)).key == f"cluster.edges[0].hardware[0].{field}"

    def test_a_serial_number_is_a_text(self) -> None:
        fault = only_fault(with_robots({"type": "Franka", "camera_serials": [322142001230]}))
        assert fault.key == "cluster.edges[0].hardware[0].camera_serials[0]"
        assert "needs quotes" in fault.rule

    @pytest.mark.parametrize(
        ("robot", "fix"),
        [
            ({"type": "Franka", "node_rank": 1}, "remove it"),
            ({"type": "Franka", "controller_node_rank": 1}, "write controller_host with the name of the host"),
            ({"type": "DualFranka", "left_controller_node_rank": 1}, "write left_controller_host with the name of"),
        ],
    )
    def test_ranks_are_not_written(self, robot: dict[str, Any], fix: str) -> None:
        assert fix in only_fault(with_robots(robot)).fix

    def test_a_controllers_host_takes_part(self) -> None:
        fault = only_fault(with_robots({"type": "Franka", "controller_host": "bootstrap"}))
        assert fault.key == "cluster.edges[0].hardware[0].controller_host"
        assert fault.fix == "write one of: cloud-1, edge-1"

    def test_exact_duplicates_are_refused(self) -> None:
        assert "just the same" in only_fault(with_robots(FRANKA, {**FRANKA, "camera_type": "realsense"})).rule

    def test_a_group_has_robots_of_one_type(self) -> None:
        fault = only_fault(with_robots(FRANKA, {"type": "Turtle2"}))
        assert fault.key == "cluster.edges[0].hardware[1].type"

    def test_robots_and_ignore_hardware_exclude_each_other(self) -> None:
        raw = with_robots(FRANKA)
        raw["rlinf"]["node_groups"] = {"edge": {"ignore_hardware": True}}
        assert "no robots in a group with ignore_hardware" in only_fault(raw).rule

    def test_a_robot_of_a_host_in_several_groups_names_its_own(self) -> None:
        raw = with_robots(FRANKA)
        raw["edges"][0]["group"] = ["edge", "arm"]
        assert only_fault(raw).key == "cluster.edges[0].hardware[0].group"
        raw["edges"][0]["hardware"][0] = {**FRANKA, "group": "cloud"}
        assert only_fault(raw).fix == "write one of: edge, arm, or remove it"

    def test_one_node_and_type_is_in_one_group(self) -> None:
        raw = with_robots({**FRANKA, "group": "edge"}, {**FRANKA, "robot_ip": "192.0.2.3", "group": "arm"})
        raw["edges"][0]["group"] = ["edge", "arm"]
        assert "a host's robots of one type are in one group" in only_fault(raw).rule

    def test_a_variable_from_which_rlinf_would_make_a_robot_is_refused(self) -> None:
        raw = guide()
        raw["edges"][0]["env"] = {"ROBOT_IP": "192.0.2.2"}
        fault = only_fault(raw)
        assert (fault.key, fault.value) == ("cluster.edges[0].env.ROBOT_IP", None)
        raw["edges"][0]["hardware"] = [{"type": "Franka"}]
        parse(raw)

    def test_a_variable_for_several_robots_has_a_value_for_each(self) -> None:
        raw = with_robots(FRANKA, {**FRANKA, "robot_ip": "192.0.2.3"})
        raw["edges"][0]["env"] = {"CAMERA_SERIALS": "1,2,3"}
        assert "edge-1 has 2 Franka robots" in only_fault(raw).rule
        raw["edges"][0]["env"] = {"CAMERA_SERIALS": "1,2"}
        parse(raw)


class TestOptions:
    """Further keys of the `cluster:` block; RLinf itself checks only `profiling`."""

    def of(self, options: dict[str, Any]) -> dict[str, Any]:
        raw = guide()
        raw["rlinf"]["options"] = options
        return raw

    def test_whatever_rlinf_ignores_is_passed_on(self) -> None:
        parse(self.of({"auto_scheduler": True, "net_emulation": {"enabled": True}, "tracer": {"output_file": None}}))

    @pytest.mark.parametrize("key", ["num_nodes", "node_groups", "component_placement"])
    def test_what_is_rendered_from_the_settings_is_refused(self, key: str) -> None:
        assert "renders this key itself" in only_fault(self.of({key: 1})).rule

    @pytest.mark.parametrize(
        ("profiling", "key"),
        [
            (True, "profiling"),
            ({}, "profiling.backend"),
            ({"backend": "perf"}, "profiling.backend"),
            ({"backend": "nsight", "step": [1]}, "profiling.step"),
            ({"backend": "nsight", "args": {}}, "profiling.args"),
            ({"backend": "nsight", "steps": [-1]}, "profiling.steps[0]"),
            ({"backend": "nsight", "steps": 1}, "profiling.steps"),
            ({"backend": "nsight", "options": {"o": "a", "output": "b"}}, "profiling"),
            ({"backend": "nsight", "options": {"t": "cuda"}, "flags": ["t"]}, "profiling"),
            ({"backend": "nsight", "steps": [1], "flags": "capture-range"}, "profiling"),
            ({"backend": "rocprof_sys", "options": {}}, "profiling.options"),
        ],
    )
    def test_a_profiler_that_rlinf_would_refuse_is_refused(self, profiling: object, key: str) -> None:
        assert only_fault(self.of({"profiling": profiling})).key == f"cluster.rlinf.options.{key}"

    def test_a_profiler_is_passed_on(self) -> None:
        parse(self.of({"profiling": {"backend": "nsight", "worker_groups": ["ActorGroup"], "options": {"t": "cuda"}}}))
