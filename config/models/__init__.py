"""What a user sets, as frozen pydantic models.

Every field is described, unknown keys are refused, and nothing here imports Pulumi or `components`. Rules that
need more than one field of the tree are in `config/rules`; how Pulumi's configuration becomes these models is in
`config/load.py`.
"""

from config.models.aws import Aws, AwsChoices, AwsDefaults, RootVolume, Spot, Vpc
from config.models.base import Hidden, Model
from config.models.cluster import Cluster
from config.models.environment import RayEnvironment
from config.models.hardware import Dosw1, DualFranka, Franka, GimArm, Robot, Turtle2
from config.models.hosts import Bootstrap, CloudNode, EdgeHost, Host, RayHost
from config.models.overlay import EasyTierFlags, Overlay
from config.models.ray import Ray
from config.models.reach import Bastion, Credentials, Login, Ssh, SshDefaults
from config.models.release import EasyTierRelease, RayLock, UvRelease
from config.models.rlinf import EnvConfig, NodeGroup, PlacementOnGroup, Rlinf

__all__ = [
    "Aws",
    "AwsChoices",
    "AwsDefaults",
    "Bastion",
    "Bootstrap",
    "CloudNode",
    "Cluster",
    "Credentials",
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
    "Login",
    "Model",
    "NodeGroup",
    "Overlay",
    "PlacementOnGroup",
    "Ray",
    "RayEnvironment",
    "RayHost",
    "RayLock",
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
