"""Robots, as RLinf 0.3.0 takes them in `node_groups[].hardware` (`rlinf/scheduler/hardware/robots`).

Fields have RLinf's names and defaults. Ranks are not written: a robot stands under its host, and a controller's host
is named. What is left out here is left out of the rendered config, where RLinf may find it in a variable of the
same name in capitals (`ROBOT_IP`), host by host.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, ClassVar, Literal, cast

from pydantic import AfterValidator, Discriminator, Field, Tag

from config.models.base import HostName, Label, Model, Port, RlinfLine, Truth


def _is_address(text: str) -> str:
    try:
        ip_address(text)
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 address") from None
    return text


Address = Annotated[str, AfterValidator(_is_address)]
# A number would lose its leading zeros, and RLinf compares texts.
Serial = Annotated[RlinfLine, Field(description="A serial number, in quotes.")]
FrankaCamera = Literal["realsense", "zed", "lumos"]
FrankaGripper = Literal["franka", "robotiq"]

_RANK_OF_HOST = ("a robot's rank is that of the host it stands under", "remove it")


def _rank_of(key: str) -> tuple[str, str]:
    return "ranks are given out by this program", f"write {key} with the name of the host"


class Robot(Model):
    """What all robots have in common."""

    group: Label | None = None
    """The node group in which RLinf finds the robot; needed only where the host is in several groups."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {"node_rank": _RANK_OF_HOST}


class Franka(Robot):
    """One Franka arm."""

    type: Literal["Franka"]
    """RLinf's name of the hardware."""
    robot_ip: Address | None = None
    """Address of the arm; left out, RLinf reads ROBOT_IP on the host."""
    camera_serials: list[Serial] | None = None
    """Serial numbers of the cameras, in quotes; left out, RLinf takes those it finds."""
    camera_type: FrankaCamera = "realsense"
    """What the cameras are."""
    gripper_type: FrankaGripper = "franka"
    """What the gripper is: Franka's own, by ROS, or Robotiq's, by Modbus."""
    gripper_connection: RlinfLine | None = None
    """Serial port of a Robotiq gripper, such as /dev/ttyUSB0."""
    controller_host: HostName | None = None
    """Host that runs the arm's controller; left out, the one that runs the environment."""
    disable_validate: Truth = False
    """Leave out RLinf's check that arm and cameras are there."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "node_rank": _RANK_OF_HOST,
        "controller_node_rank": _rank_of("controller_host"),
    }


class DualFranka(Robot):
    """Two Franka arms that one environment drives."""

    type: Literal["DualFranka"]
    """RLinf's name of the hardware."""
    left_robot_ip: Address | None = None
    """Address of the left arm; left out, RLinf reads LEFT_ROBOT_IP on the host."""
    right_robot_ip: Address | None = None
    """Address of the right arm; left out, RLinf reads RIGHT_ROBOT_IP on the host."""
    left_camera_serials: list[Serial] | None = None
    """Serial numbers of the left wrist's cameras, in quotes."""
    right_camera_serials: list[Serial] | None = None
    """Serial numbers of the right wrist's cameras, in quotes."""
    base_camera_serials: list[Serial] | None = None
    """Serial numbers of the cameras that watch from outside, in quotes."""
    camera_type: FrankaCamera = "realsense"
    """What the cameras are where their own type is not given."""
    base_camera_type: FrankaCamera | None = None
    """What the cameras that watch from outside are."""
    left_camera_type: FrankaCamera | None = None
    """What the left wrist's cameras are."""
    right_camera_type: FrankaCamera | None = None
    """What the right wrist's cameras are."""
    left_gripper_type: FrankaGripper = "franka"
    """What the left gripper is."""
    right_gripper_type: FrankaGripper = "franka"
    """What the right gripper is."""
    left_gripper_connection: RlinfLine | None = None
    """Serial port of the left Robotiq gripper."""
    right_gripper_connection: RlinfLine | None = None
    """Serial port of the right Robotiq gripper."""
    left_controller_host: HostName | None = None
    """Host that runs the left arm's controller; left out, the one that runs the environment."""
    right_controller_host: HostName | None = None
    """Host that runs the right arm's controller; left out, the one that runs the environment."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "node_rank": _RANK_OF_HOST,
        "left_controller_node_rank": _rank_of("left_controller_host"),
        "right_controller_node_rank": _rank_of("right_controller_host"),
    }


class GimArm(Robot):
    """One GimArm on a CAN bus."""

    type: Literal["GimArm"]
    """RLinf's name of the hardware."""
    can_interface: RlinfLine = "can0"
    """Network device of the CAN bus."""
    arm_variant: Literal["gim_arm", "gim_arm_xl"] = "gim_arm_xl"
    """Which arm it is."""
    camera_serials: list[Serial] | None = None
    """Serial numbers of the cameras, in quotes; left out or empty, there are none."""
    camera_type: Literal["realsense", "zed"] = "realsense"
    """What the cameras are."""
    enable_gripper: Truth = True
    """Whether a gripper is attached and driven."""
    gripper_type: Literal["parallel", "single_side"] = "parallel"
    """What the gripper is."""
    controller_host: HostName | None = None
    """Host that runs the arm's controller; left out, the one that runs the environment."""
    disable_validate: Truth = False
    """Leave out RLinf's check that the CAN bus is there."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "node_rank": _RANK_OF_HOST,
        "controller_node_rank": _rank_of("controller_host"),
    }


class Dosw1(Robot):
    """One DOS-W1 dual-arm robot, driven over AirBot's gRPC."""

    type: Literal["DOSW1"]
    """RLinf's name of the hardware."""
    robot_url: RlinfLine = "localhost"
    """Host name or address of the gRPC services."""
    left_arm_port: Port = 50051
    """Port of the left follower arm."""
    right_arm_port: Port = 50053
    """Port of the right follower arm."""
    left_lead_port: Port = 50050
    """Port of the left leader arm."""
    right_lead_port: Port = 50052
    """Port of the right leader arm."""
    camera_serials: list[Serial] | None = None
    """Serial numbers of the RealSense cameras, in quotes."""


class Turtle2(Robot):
    """One Turtle2, which has no settings in RLinf."""

    type: Literal["Turtle2"]
    """RLinf's name of the hardware."""


_TYPES: dict[str, type[Robot]] = {
    "Franka": Franka,
    "DualFranka": DualFranka,
    "GimArm": GimArm,
    "DOSW1": Dosw1,
    "Turtle2": Turtle2,
}


def _type(value: object) -> str | None:
    given = cast("dict[str, object]", value).get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"\0{given}" if isinstance(given, str) and given in _TYPES else None


# A tag of a union begins with a NUL, so that it can be told from a key in the location of a fault.
Hardware = Annotated[
    Annotated[Franka, Tag("\0Franka")]
    | Annotated[DualFranka, Tag("\0DualFranka")]
    | Annotated[GimArm, Tag("\0GimArm")]
    | Annotated[Dosw1, Tag("\0DOSW1")]
    | Annotated[Turtle2, Tag("\0Turtle2")],
    Discriminator(
        _type,
        custom_error_type="hardware_type",
        custom_error_message=f"must be a robot with a `type` that RLinf knows: {', '.join(_TYPES)}",
    ),
]
