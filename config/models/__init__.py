"""What a user sets, as frozen pydantic models.

Every field is described, unknown keys are refused, and nothing here imports Pulumi or `components`. Rules that
need more than one field of the tree are in `config/rules`; how Pulumi's configuration becomes these models is in
`config/load.py`.
"""

from config.models.aws import Aws, AwsChoices, AwsDefaults, RootVolume, Spot, Vpc
from config.models.base import Hidden, Model
from config.models.cluster import Cluster
from config.models.hardware import Dosw1, DualFranka, Franka, GimArm, Robot, Turtle2
from config.models.hosts import Bootstrap, CloudNode, EdgeHost, Host, RayHost
from config.models.overlay import EasyTierFlags, Overlay
from config.models.ray import Ray
from config.models.reach import Ssh, SshDefaults
from config.models.release import EasyTierRelease, UvRelease
from config.models.rlinf import EnvConfig, NodeGroup, PlacementOnGroup, Rlinf

__all__ = [
    "Aws",
    "AwsChoices",
    "AwsDefaults",
    "Bootstrap",
    "CloudNode",
    "Cluster",
    "Dosw1",
    "DualFranka",
    "EasyTierFlags",
    "EasyTierRelease",
    "EdgeHost",
    "EnvConfig",
    "Franka",
    "GimArm",
    "Hidden",
    "Host",
    "Model",
    "NodeGroup",
    "Overlay",
    "PlacementOnGroup",
    "Ray",
    "RayHost",
    "Rlinf",
    "Robot",
    "RootVolume",
    "Spot",
    "Ssh",
    "SshDefaults",
    "Turtle2",
    "UvRelease",
    "Vpc",
]
