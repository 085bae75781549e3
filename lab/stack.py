"""A Pulumi stack on a lab: its settings from the lab's inventory, and `pulumi` run as the lab's operator.

What the demo, the tests and the benchmark share. The settings it writes are those a user would write by hand.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML

from lab.paths import CLONE, VENV
from lab.session import Session

NAME = "lab"
Edit: TypeAlias = Callable[[dict[str, Any]], None]
"""Changes the `cluster` object of a stack's settings, in place."""
_PROGRAM = ("Pulumi.yaml", "__main__.py", "components", "config")


class StackError(Exception):
    """A `pulumi` command failed; the message holds what it printed."""


@dataclass(frozen=True)
class Stack:
    """The stack `lab` of a project folder, on a lab that is up.

    Attributes:
        project: folder with Pulumi.yaml.
        lab: the lab.
    """

    project: Path
    lab: Session

    @property
    def settings_file(self) -> Path:
        """The stack's settings, `config/Pulumi.lab.yaml`."""
        return self.project / "config" / f"Pulumi.{NAME}.yaml"

    def create(self, secret: str) -> None:
        """Makes the stack where there is none, with the lab's inventory as its settings and this network secret.

        Raises:
            StackError: Pulumi refuses.
        """
        exists = self.pulumi("stack", "ls", "--json")
        if NAME not in {entry["name"] for entry in json.loads(exists)}:
            self.settings_file.unlink(missing_ok=True)
            self.pulumi("stack", "init", NAME)
        self.settings(self.lab.inventory()["cluster"])
        self.pulumi("config", "set", "--secret", "networkSecret", stdin=secret)

    def settings(self, cluster: dict[str, Any]) -> None:
        """Writes the `cluster` object; secrets and all else in the file stay."""
        yaml = YAML()
        document: dict[str, Any] = (
            yaml.load(self.settings_file) if self.settings_file.exists() else {}  # pyright: ignore[reportUnknownMemberType]  # ruamel.yaml leaves its types open
        ) or {}
        document.setdefault("config", {})["rlinf-cloud-edge:cluster"] = cluster
        yaml.dump(document, self.settings_file)  # pyright: ignore[reportUnknownMemberType]  # the same

    def change(self, edit: Edit) -> None:
        """Writes the lab's inventory as an edit has changed it."""
        cluster = self.lab.inventory()["cluster"]
        edit(cluster)
        self.settings(cluster)

    def run(
        self, *argv: str, stdin: str = "", limit: float = 600, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `pulumi` and returns what came of it, whatever that is."""
        return self.lab.run(
            *self._command(argv), stdin=stdin, limit=limit, cwd=self.project, PULUMI_STACK=NAME, **variables
        )

    def pulumi(self, *argv: str, stdin: str = "", limit: float = 600) -> str:
        """Runs `pulumi` and returns its standard output.

        Raises:
            StackError: it failed.
        """
        done = self.run(*argv, stdin=stdin, limit=limit)
        if done.returncode != 0:
            raise StackError(f"pulumi {' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def stream(self, *argv: str) -> None:
        """Runs `pulumi` for a person to watch.

        Raises:
            StackError: it failed; it has said why.
        """
        try:
            self.lab.stream(*self._command(argv), cwd=self.project, PULUMI_STACK=NAME)
        except subprocess.CalledProcessError:
            raise StackError(f"pulumi {argv[0]} failed; what it printed says why") from None

    def up(self, *argv: str) -> str:
        """`pulumi up`, without questions.

        Raises:
            StackError: it failed.
        """
        return self.pulumi("up", "--yes", "--skip-preview", *argv)

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs; secret ones are hidden."""
        return json.loads(self.pulumi("stack", "output", "--json"))

    @staticmethod
    def _command(argv: Sequence[str]) -> list[str]:
        return ["pulumi", *argv, "--non-interactive", "--color", "never"]


def copy_program(folder: Path) -> Path:
    """Copies the program to a folder, so that a stack's settings don't land in the clone; returns the folder."""
    for name in _PROGRAM:
        source = CLONE / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "Pulumi.*.yaml"))
        else:
            shutil.copy2(source, folder / name)
    (folder / ".venv").symlink_to(VENV)
    return folder
