"""What the rendered RLinf config says beyond the hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Discriminator, Field, JsonValue, StringConstraints, Tag, WithJsonSchema

from config.models.base import (
    LABEL,
    Hidden,
    HostName,
    Label,
    Line,
    Model,
    RlinfPath,
    RlinfVariableValue,
    Truth,
    VariableName,
    number_to_text,
    text_or_number,
)

# The grammar is checked against the group's resources, in `rules/rlinf.py`.
_PLACEMENT = r"^[0-9A-Za-z,: -]+$"
Placement = Annotated[
    str,
    BeforeValidator(number_to_text),
    StringConstraints(pattern=_PLACEMENT, max_length=4096),
    WithJsonSchema(text_or_number(_PLACEMENT)),
]
_COMPONENT = r"[A-Za-z_][A-Za-z0-9_-]*"
Components = Annotated[str, StringConstraints(pattern=rf"^ *{_COMPONENT}( *, *{_COMPONENT})* *$", max_length=1024)]
_LABELS = rf"^ *{LABEL}( *, *{LABEL})* *$"
_Labels = Annotated[
    str,
    BeforeValidator(number_to_text),
    StringConstraints(pattern=_LABELS, max_length=4096),
    WithJsonSchema(text_or_number(_LABELS)),
]
ConfigName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]


def _several(value: object) -> str:
    return "\0several" if isinstance(value, (list, tuple)) else "\0one"


def _form(value: object) -> str:
    return "\0group" if isinstance(value, (dict, PlacementOnGroup)) else "\0plain"


class PlacementOnGroup(Model):
    """Where a component runs: resources of node groups."""

    node_group: Annotated[
        Annotated[_Labels, Tag("\0one")] | Annotated[list[Label], Field(min_length=1), Tag("\0several")],
        Discriminator(_several),
    ] = "cluster"
    """Label of a node group, or several: `a,b`. RLinf's own are `cluster`, all nodes, and `node`, all nodes without
    their hardware."""
    placement: Placement
    """RLinf's placement grammar, `resources[:processes],...`, such as `0-3`, `0-1:0-3` or `all`."""

    @property
    def node_groups(self) -> tuple[str, ...]:
        """Labels of the node groups, in the order in which their resources are numbered."""
        labels = self.node_group.split(",") if isinstance(self.node_group, str) else self.node_group
        return tuple(label.strip() for label in labels)


ComponentPlacement = Annotated[
    Annotated[PlacementOnGroup, Tag("\0group")] | Annotated[Placement, Tag("\0plain")],
    Discriminator(_form),
]


class EnvConfig(Model):
    """The software environment that RLinf gives its workers on some hosts of a group."""

    hosts: list[HostName] | None = Field(default=None, min_length=1)
    """Names of hosts of the group; all of them when left out."""
    env_vars: Annotated[dict[VariableName, RlinfVariableValue], Hidden()] = Field(default_factory=dict[str, str])
    """Variables of the workers. RLinf takes each variable only once in a group."""
    python_interpreter_path: RlinfPath | None = None
    """Python that runs the workers."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "node_ranks": ("ranks are given out by this program", "write hosts with the names of the hosts"),
    }


class NodeGroup(Model):
    """What RLinf is told about a node group beyond its hosts."""

    env_configs: list[EnvConfig] = Field(default_factory=list[EnvConfig])
    """Software environments of hosts of the group."""
    ignore_hardware: Truth = False
    """Take each host of the group for one resource, whatever accelerators it has."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "label": ("the label is the key itself", "remove it"),
        "node_ranks": ("a group consists of the hosts that name it as their group", "remove it"),
        "hardware": ("robots stand under their hosts", "move it to the host's own hardware"),
    }


class Rlinf(Model):
    """Where RLinf's components run, and what else RLinf is told."""

    component_placement: dict[Components, ComponentPlacement] = Field(min_length=1)
    """Component (`actor`, or several: `actor,rollout`) to where it runs: resources of all nodes, or of a group."""
    node_groups: dict[Label, NodeGroup] = Field(default_factory=dict[str, NodeGroup])
    """What RLinf is told about node groups beyond their hosts: label to settings."""
    base_config: Line | None = None
    """YAML file of a whole RLinf config, relative to Pulumi.yaml: it is rendered with its `cluster:` replaced."""
    config_name: ConfigName | None = None
    """Name of the rendered config on the head, for Hydra's --config-name; by default that of the base config, or
    `cluster`."""
    options: dict[Line, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Further keys of RLinf's `cluster:` block, passed on as they are: `profiling`, `auto_scheduler`,
    `net_emulation`, ..."""
