"""A stack without a host on AWS has no need of AWS: no package, no plugin, no credentials. With Pulumi's own CLI."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract import command_stack
from tests.contract.test_environments import SECRETS, Clone
from tests.example_settings import guide
from tests.program.aws_account import guide_on_aws

pytestmark = pytest.mark.slow

_IMPORTED = "this machine has no pulumi_aws"
_NO_PACKAGE = f"""
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pulumi_aws":
            raise ModuleNotFoundError("{_IMPORTED}", name=name)


sys.meta_path.insert(0, Missing())
"""


@pytest.fixture
def clone(
    bin_dirs: list[Path],
    command_plugin: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Clone:
    """A checkout where `pulumi_aws` can't be imported, no `aws` plugin is installed and nothing of AWS is set."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_NO_PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    home = tmp_path / "home"
    command_stack.install(command_plugin, bin_dirs, home)
    made = Clone.make(tmp_path / "clone", tmp_path / "backend", bin_dirs, home, None)
    made.ok("dev", "stack", "init", "dev")
    made.ok("dev", "config", "set", "--secret", "networkSecret", stdin=SECRETS["dev"])
    return made


def write(clone: Clone, cluster: dict[str, Any]) -> None:
    """The stack's settings."""
    file = clone.settings_file("dev")
    document = yaml.safe_load(file.read_text())
    document["config"]["rlinf-cloud-edge:cluster"] = cluster
    file.write_text(yaml.safe_dump(document))


def test_a_preview_without_a_host_on_aws_asks_nothing_of_it(clone: Clone) -> None:
    write(clone, guide())
    steps = json.loads(clone.ok("dev", "preview", "--json"))["steps"]
    urns = [step["urn"] for step in steps]
    assert any(urn.endswith("::cloud-1-gate") for urn in urns), urns
    assert not [urn for urn in urns if "aws" in urn]
    # What it was kept from is what a host on AWS needs.
    write(clone, guide_on_aws())
    code, told = clone.pulumi("dev", "preview")
    assert code != 0
    assert _IMPORTED in told
