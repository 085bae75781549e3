"""Where a host's Ray comes from, and the variables that it gets."""

from __future__ import annotations

from typing import Annotated

from config.models.base import AbsolutePath, Hidden, Line, Model, VariableName, VariableValue

Environment = Annotated[dict[VariableName, VariableValue], Hidden()]


class RayEnvironment(Model):
    """An existing environment with Ray, such as the one RLinf is installed in: by its path or by a command."""

    venv: AbsolutePath | None = None
    """An existing virtual environment with Ray."""
    activate: Line | None = None
    """A command that makes an existing environment with Ray the one in use, such as `source switch_env openvla`. It is
    evaluated by a login shell of the account that Ray runs as; the variables it leaves are Ray's and every worker's."""

    @property
    def exists(self) -> bool:
        """Whether it names an environment."""
        return self.venv is not None or self.activate is not None
