"""A Pulumi stack on a local backend, with the plugin under test in a Pulumi home of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.paths import CLONE, VENV

VERSION = "1.2.1"

_PROGRAM = Path(__file__).parent / "programs" / "resources.py"


@dataclass
class Stack:
    """One stack. `resources` is written before each operation."""

    folder: Path
    bin_dirs: list[Path]
    pulumi_home: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def create(
        cls,
        folder: Path,
        bin_dirs: list[Path],
        pulumi_home: Path,
        program: Path = _PROGRAM,
        variables: Mapping[str, str] | None = None,
    ) -> Stack:
        """A new project with an empty stack; `variables` are those of its commands beyond the usual."""
        stack = cls(folder, bin_dirs, pulumi_home, variables or {})
        (folder / "Pulumi.yaml").write_text("name: contract\nruntime: python\n")
        shutil.copy2(program, folder / "__main__.py")
        (folder / "backend").mkdir()
        stack.write({})
        stack.pulumi("stack", "init", "contract")
        return stack

    def write(self, resources: Mapping[str, Any]) -> None:
        """What the program will consist of: name → type, arguments, options; another program's own settings."""
        (self.folder / "resources.json").write_text(json.dumps(resources))

    def up(self, *, fails: bool = False) -> str:
        """`pulumi up`; what it said."""
        return self.pulumi("up", "--yes", "--skip-preview", "--diff", fails=fails)

    def preview(self) -> dict[str, int]:
        """`pulumi preview`; how many resources it would change, by operation."""
        return json.loads(self.pulumi("preview", "--json"))["changeSummary"]

    def destroy(self) -> str:
        """`pulumi destroy`; what it said."""
        return self.pulumi("destroy", "--yes", "--skip-preview")

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs."""
        return json.loads(self.pulumi("stack", "output", "--json"))

    def exported(self) -> str:
        """The exported state, as text."""
        return self.pulumi("stack", "export")

    def pulumi(self, *arguments: str, fails: bool = False) -> str:
        """Runs the CLI; both its streams. Raises `AssertionError` if it does not end as expected."""
        done = run(
            self.folder, {**environment(self.bin_dirs, self.pulumi_home, self.folder), **self.variables}, *arguments
        )
        assert (done.returncode != 0) is fails, f"pulumi {' '.join(arguments)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout if arguments[-1] == "--json" else done.stdout + done.stderr


def stack_of_components(program: Path, plugin: Path, bin_dirs: list[Path], folder: Path) -> Stack:
    """An empty stack of a program that uses this project's components, on the hosts that its `hosts.json` names.

    Args:
        program: its `__main__.py`.
        plugin: the `command` plugin's folder.
        bin_dirs: folders of the `pulumi` command and its language host.
        folder: an empty one.
    """
    home, project = folder / "home", folder / "program"
    home.mkdir()
    project.mkdir()
    install(plugin, bin_dirs, home)
    (project / "hosts.json").write_text("{}")
    for package in ("components", "config"):
        (project / package).symlink_to(CLONE / package)
    return Stack.create(project, bin_dirs, home, program)


def run(
    folder: Path, environment: Mapping[str, str], *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs the CLI, whatever comes of it.

    Args:
        folder: the project's.
        environment: as `environment` makes it.
        arguments: of the command.
        stdin: what it reads.
    """
    return subprocess.run(
        ["pulumi", *arguments, "--non-interactive", "--color", "never"],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def environment(bin_dirs: list[Path], pulumi_home: Path, folder: Path) -> dict[str, str]:
    """The variables of a `pulumi` command: nothing of the user's own Pulumi, no SSH agent."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("PULUMI_") and name != "SSH_AUTH_SOCK"
    }
    path = [str(each) for each in (VENV / "bin", *bin_dirs)]
    return {
        **kept,
        "PATH": os.pathsep.join([*path, kept.get("PATH", os.defpath)]),
        "PULUMI_HOME": str(pulumi_home),
        "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": "contract",
        "PULUMI_STACK": "contract",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def install(
    plugin: Path, bin_dirs: list[Path], pulumi_home: Path, name: str = "command", version: str = VERSION
) -> None:
    """Puts the plugin's folder into a Pulumi home."""
    subprocess.run(
        [str(bin_dirs[0] / "pulumi"), "plugin", "install", "resource", name, version, "--file", str(plugin)],
        env=environment(bin_dirs, pulumi_home, pulumi_home),
        check=True,
        capture_output=True,
    )
