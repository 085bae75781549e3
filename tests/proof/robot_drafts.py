"""Robots as a user might write them under a host, for `drafts.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.proof.choices import Choices

TYPES = ("Franka", "DualFranka", "GimArm", "DOSW1", "Turtle2")

CAMERAS = ("realsense", "zed", "lumos")
SERIALS = ("0123456789", "1234", "1e5", "ZED:1")
PORTS = ("/dev/ttyUSB0", "/dev/serial/by-id/a: b")
GRIPPERS = ("franka", "robotiq")


def robot(some: Choices, type_: str, number: int, hosts: Sequence[str]) -> dict[str, Any]:
    """One robot.

    Args:
        some: chooses what is written.
        type_: RLinf's name of the hardware.
        number: makes it another than the rest of its host: RLinf refuses the same robot twice.
        hosts: names that its controllers may have.
    """
    match type_:
        case "Franka":
            required: dict[str, Any] = {"robot_ip": f"172.16.0.{number + 2}"}
            optional: dict[str, Any] = {
                "camera_serials": some.some(SERIALS, 2),
                "camera_type": some.of(CAMERAS),
                "gripper_type": some.of(GRIPPERS),
                "gripper_connection": some.of(PORTS),
                "controller_host": some.of(hosts),
                "disable_validate": some.flip(),
            }
        case "DualFranka":
            required = {"left_robot_ip": f"172.16.0.{number + 2}"}
            optional = {
                "right_robot_ip": "fd00::2",
                "camera_type": some.of(CAMERAS),
                "left_camera_serials": some.some(SERIALS, 2),
                "right_camera_type": some.of(CAMERAS),
                "base_camera_serials": some.some(SERIALS, 2),
                "left_gripper_type": some.of(GRIPPERS),
                "right_gripper_connection": some.of(PORTS),
                "left_controller_host": some.of(hosts),
                "right_controller_host": some.of(hosts),
            }
        case "GimArm":
            required = {"can_interface": f"can{number}"}
            optional = {
                "arm_variant": some.of(("gim_arm", "gim_arm_xl")),
                "camera_serials": some.some(SERIALS, 2),
                "camera_type": some.of(CAMERAS[:2]),
                "enable_gripper": some.flip(),
                "gripper_type": some.of(("parallel", "single_side")),
                "controller_host": some.of(hosts),
                "disable_validate": some.flip(),
            }
        case "DOSW1":
            required = {"robot_url": f"robot-{number}.local"}
            optional = {
                "left_arm_port": some.between(1, 100),
                "right_lead_port": some.between(1, 100),
                "camera_serials": some.some(SERIALS, 2),
            }
        case _:
            required, optional = {}, {}
    return {"type": type_, **required, **{name: optional[name] for name in some.some(sorted(optional), 3)}}


def most_on_a_host(type_: str) -> int:
    """Two Turtle2 of one host can't differ."""
    return 1 if type_ == "Turtle2" else 2
