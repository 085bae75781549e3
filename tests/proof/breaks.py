"""Ways to break settings, one at a time: every rule that RLinf has on its `cluster:` block, and what lies near it.

What RLinf makes of broken settings is not known beforehand: some of them are still right. It is asked.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.proof.choices import Choices
from tests.proof.drafts import LABELS, Settings, draft

Break = Callable[[Choices, Settings], None]
"""Changes settings in place."""

PLACEMENTS: tuple[object, ...] = (
    *(
        "",
        ",",
        "-",
        ":",
        "a",
        "0:",
        ":0",
        "0-",
        "-1",
        "0-1-2",
        "0::0",
        "0:0:0",
        "all:all",
        "all:0",
        "none",
        "All",
        "0,all",
    ),
    *("1-0", "0,0", "1,0", "0-1,1", "0-1,1-2", "0:0,1:0", "0:0,1:2", "0:1", "1:1,2:2", "0:1,1:0", "0-1:0-2", "0-2:0-1"),
    *(
        "0-1:0",
        "0-1:0-1",
        "0-3:0-1",
        "all:0-1",
        "all:0-5",
        "0:0-3",
        "0-0:0-0",
        "00",
        "01-02",
        "0 - 1",
        " 0",
        "0 ",
        "0 : 0",
    ),
    *("0,,1", "0,1,", "0-999", "999", "0.0", "1e0", "+0", "0x0", "٠", "1_0", "0;1", "[0]", "0-1 2", "ALL:0-0"),
    *(0, 1, 7, -1, 90, True, None, 0.5, 1.0),
)
GROUPS: tuple[object, ...] = (
    *(
        "cluster",
        "node",
        "nowhere",
        "gpu",
        "",
        ",",
        "gpu,",
        "node,cluster",
        "cluster,node",
        "Cluster",
        "gpu,gpu",
        "cloud,edge",
    ),
    *(" gpu", 4090, "4090,gpu", ["gpu", "arm"], [], ["gpu,arm"], ["nowhere"], None, True, 40.9),
)
COMPONENTS: tuple[object, ...] = (
    "actor",
    "rollout,actor",
    "actor,actor",
    "actor,",
    ",",
    "",
    "a b",
    " actor ",
    7,
    "a.b",
    "ü",
)
VALUES: tuple[object, ...] = (
    "${oc.env:HOME}",
    "???",
    "$${X}",
    "\\${X}",
    "a\nb",
    None,
    True,
    1.5,
    [],
    "${",
    "$X}",
    "a:\n",
)
RANKS: tuple[object, ...] = (0, 1, 2, 7, -1, "1", 1.0, True, None)


def broken(some: Choices) -> tuple[str, Settings]:
    """What was done, and the settings."""
    settings = copy.deepcopy(draft(some).settings)
    names = some.some(BREAKS, 2) or [some.of(tuple(BREAKS))]
    for name in names:
        BREAKS[name](some, settings)
    return " and ".join(names), settings


def a_host(some: Choices, settings: Settings) -> Settings:
    """One that runs Ray."""
    return some.of([*settings["cloud"], *settings["edges"]])


def a_group(some: Choices, settings: Settings) -> Settings:
    """The settings of a group that there is, or of one that there is not."""
    label = some.of((*LABELS, "nowhere", "node"))
    return settings["rlinf"].setdefault("node_groups", {}).setdefault(label, {})


def a_robot(some: Choices, settings: Settings) -> Settings:
    """A robot; where there is none, one is put somewhere."""
    hosts = [host for host in (*settings["cloud"], *settings["edges"]) if host.get("hardware")]
    if hosts:
        return some.of(some.of(hosts)["hardware"])
    robot = {"type": "Franka", "robot_ip": "172.16.0.9"}
    a_host(some, settings)["hardware"] = [robot]
    return robot


def placement(some: Choices, settings: Settings) -> None:
    """Another placement."""
    component = some.of(list(settings["rlinf"]["component_placement"]))
    value = settings["rlinf"]["component_placement"][component]
    if isinstance(value, dict):
        value["placement"] = some.of(PLACEMENTS)
    else:
        settings["rlinf"]["component_placement"][component] = some.of(PLACEMENTS)


def placement_by_one(some: Choices, settings: Settings) -> None:
    """A placement with one of its characters changed, or doubled, or left out."""
    component = some.of(list(settings["rlinf"]["component_placement"]))
    value = settings["rlinf"]["component_placement"][component]
    text = str(value["placement"] if isinstance(value, dict) else value) or "0"
    at = some.between(0, len(text) - 1)
    text = text[:at] + some.of(("", "0", "1", "2", "-", ",", ":", text[at] * 2)) + text[at + 1 :]
    if isinstance(value, dict):
        value["placement"] = text
    else:
        settings["rlinf"]["component_placement"][component] = text


def node_group(some: Choices, settings: Settings) -> None:
    """A component on another group."""
    component = some.of(list(settings["rlinf"]["component_placement"]))
    value = settings["rlinf"]["component_placement"][component]
    text = value["placement"] if isinstance(value, dict) else value
    settings["rlinf"]["component_placement"][component] = {"node_group": some.of(GROUPS), "placement": text}


def all_for_one(some: Choices, settings: Settings) -> None:
    """One process with all of two groups, which may be on one node and of two kinds."""
    host = a_host(some, settings)
    groups = host.get("group")
    if not isinstance(groups, list) or len(groups) < 2:
        host["group"] = groups = ["gpu", "arm"]
        host["hardware"] = [{"type": some.of(("Turtle2", "DOSW1")), "group": "arm"}]
        host["gpus"] = some.between(0, 2)
    value = {"node_group": ",".join(map(str, groups)), "placement": some.of(("all:0", "all", "0-1:0", "0-2:0"))}
    settings["rlinf"]["component_placement"] = {"env": value}


def component(some: Choices, settings: Settings) -> None:
    """One more component, or no more than one."""
    name: Any = some.of(COMPONENTS)
    if some.flip():
        settings["rlinf"]["component_placement"] = {}
    settings["rlinf"]["component_placement"][name] = {"node_group": "node", "placement": "0"}


def accelerators(some: Choices, settings: Settings) -> None:
    """Fewer or more accelerators."""
    a_host(some, settings)["gpus"] = some.of((0, 1, 3, 8))


def group_of_host(some: Choices, settings: Settings) -> None:
    """A host in another group."""
    a_host(some, settings)["group"] = some.of(
        ("cluster", "node", "gpu", "arm", 4090, ["gpu", "arm"], ["gpu", "gpu"], "a,b", "", "Node", "-", "a b", [])
    )


def rank(some: Choices, settings: Settings) -> None:
    """A rank that may be another host's, leave a hole, or be the head's."""
    a_host(some, settings)["rank"] = some.of(RANKS)


def host_out(some: Choices, settings: Settings) -> None:
    """A host that does not count; it may be the head, or the last of its group."""
    a_host(some, settings).update(some.of(({"enabled": False}, {"lost": True})))


def ignored_hardware(some: Choices, settings: Settings) -> None:
    """Hardware ignored, where there may be robots."""
    a_group(some, settings)["ignore_hardware"] = some.of((True, False, "yes", 1))


def environment(some: Choices, settings: Settings) -> None:
    """One more environment of a group, whose host or variable may have one already."""
    hosts = [host["name"] for host in (*settings["cloud"], *settings["edges"])]
    config: Settings = {}
    if some.flip():
        config["hosts"] = some.of((hosts, hosts[:1], hosts[-1:], ["nowhere"], [hosts[0], hosts[0]], []))
    if some.flip():
        config["env_vars"] = {
            some.of(("X", "NCCL_DEBUG", "RAY_ADDRESS", "1X", "")): some.of(("1", 2, "", True, None, *VALUES))
        }
    if some.flip():
        config["python_interpreter_path"] = some.of(("/p", "python3", "", "/a${b}", "/a b", 3))
    a_group(some, settings).setdefault("env_configs", []).append(config)


def variable_of_host(some: Choices, settings: Settings) -> None:
    """A variable of a host, of which RLinf may make a robot."""
    names = (
        "ROBOT_IP",
        "LEFT_ROBOT_IP",
        "RIGHT_ROBOT_IP",
        "CAN_INTERFACE",
        "ROBOT_URL",
        "CAMERA_SERIALS",
        "TYPE",
        "GROUP",
    )
    a_host(some, settings).setdefault("env", {})[some.of(names)] = some.of(("172.16.0.9", "a,b", "a,b,c", ""))


def two_of_a_robot(some: Choices, settings: Settings) -> None:
    """A robot that stands twice."""
    a_robot(some, settings)
    host = some.of([host for host in (*settings["cloud"], *settings["edges"]) if host.get("hardware")])
    host["hardware"].append(copy.deepcopy(some.of(host["hardware"])))


def robot_of_another_type(some: Choices, settings: Settings) -> None:
    """A robot of another type beside what is there, or of one that RLinf does not know."""
    type_ = some.of(("Turtle2", "Franka", "GimArm", "DOSW1", "DualFranka", "franka", "UR5", "", None))
    host = a_host(some, settings)
    robot: Settings = {"type": type_}
    groups = host.get("group")
    if isinstance(groups, list) and groups:
        robot["group"] = some.of(groups)
    host.setdefault("hardware", []).append(robot)


def robot_of_another_group(some: Choices, settings: Settings) -> None:
    """A robot in another group, perhaps not one of its host."""
    a_robot(some, settings)["group"] = some.of(LABELS)


def field_of_robot(some: Choices, settings: Settings) -> None:
    """A field of a robot, as it may be mistyped."""
    values: dict[str, tuple[object, ...]] = {
        "robot_ip": ("172.16.0.300", "robot.local", "", 5, "fe80::1%eth0", "::1", None),
        "left_robot_ip": ("172.16.0.300", "1.2.3.4"),
        "camera_serials": ([], ["1"], [1], "1", ["${x}"], None),
        "camera_type": ("zed", "ZED", "webcam", ""),
        "gripper_type": ("franka", "robotiq", "parallel", "hand"),
        "arm_variant": ("gim_arm", "gim_arm_m"),
        "left_arm_port": (50051, "50051", 0, 70000),
        "controller_host": ("host-0", "nowhere"),
        "disable_validate": (True, "no"),
        "node_rank": (0, 1),
        "robot_ips": ("1.2.3.4",),
        "can_interface": ("can1", "", 0),
    }
    name = some.of(tuple(values))
    a_robot(some, settings)[name] = some.of(values[name])


def option(some: Choices, settings: Settings) -> None:
    """A further key, which may be one of RLinf's own, or a profiler's wrong settings."""
    options = settings["rlinf"].setdefault("options", {})
    name, value = some.of(
        (
            ("profiling", {"backend": "nsight", "steps": [-1]}),
            ("profiling", {"backend": "nsight", "steps": 3}),
            ("profiling", {"backend": "nsight", "steps": ["a"]}),
            ("profiling", {"backend": "nsight", "worker_groups": {"a": 1}}),
            ("profiling", {"backend": "nsight", "worker_groups": 3}),
            ("profiling", {"backend": "nsight", "flags": ["a"], "options": {"a": 1}}),
            ("profiling", {"backend": "nsight", "flags": [""]}),
            ("profiling", {"backend": "nsight", "flags": {"a": 1}}),
            ("profiling", {"backend": "nsight", "options": ["a"]}),
            ("profiling", {"backend": "nsight", "options": {"o": 1, "output": 2}}),
            ("profiling", {"backend": "nsight", "options": {"stop-on-range-end": 1, "capture-range-end": 2}}),
            ("profiling", {"backend": "nsight", "options": {"stop-on-range-end": None}}),
            ("profiling", {"backend": "nsight", "args": {}}),
            ("profiling", {"backend": "rocprof_sys", "args": ["a"]}),
            ("profiling", {"backend": "rocprof_sys", "env": "a"}),
            ("profiling", {"backend": "perf"}),
            ("profiling", {"enabled": True}),
            ("profiling", {"backend": None}),
            ("profiling", {"backend": ["nsight"]}),
            ("profiling", []),
            ("profiling", None),
            ("profiling", "nsight"),
            ("profiling", {}),
            ("num_nodes", 2),
            ("node_groups", []),
            ("component_placement", {}),
            ("tracer", None),
            ("tracer", {"output_file": "${oc.env:HOME}/x"}),
            ("tracer", {"output_file": "${nothing}"}),
            ("a", "???"),
            ("1", {"2": [3, None, 1.5, "4", True]}),
        )
    )
    options[name] = value


BREAKS: dict[str, Break] = {
    each.__name__.replace("_", " "): each
    for each in (
        placement,
        placement_by_one,
        node_group,
        all_for_one,
        component,
        accelerators,
        group_of_host,
        rank,
        host_out,
        ignored_hardware,
        environment,
        variable_of_host,
        two_of_a_robot,
        robot_of_another_type,
        robot_of_another_group,
        field_of_robot,
        option,
    )
}
