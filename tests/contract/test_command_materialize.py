"""How the substitute command plugin is laid out as a folder that Pulumi can install."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from lab.command_plugin import SUBSTITUTE
from lab.paths import Cache
from tests.contract.command_harness import COPY, LOCAL, Provider

UV = Cache.from_environment().uv


@pytest.fixture(scope="module")
def destination(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for plugins, in which making one has been cut off."""
    destination = tmp_path_factory.mktemp("a place with spaces") / "plugins"
    folder = SUBSTITUTE.materialize(destination, UV)
    shutil.rmtree(folder)
    (folder.parent / "venv" / "bin" / "python").unlink()
    return destination


def test_what_was_cut_off_is_made_again_and_works(destination: Path) -> None:
    folder = SUBSTITUTE.materialize(destination, UV)
    assert [path.name for path in folder.iterdir()] == ["pulumi-resource-command"]
    provider = Provider.start(folder)
    assert provider.create(LOCAL, {"create": "echo works"}).state["stdout"] == "works"
    assert "substitute for Pulumi's command plugin" in provider.everything_logged
    provider.close()


def test_what_is_there_is_not_made_again(destination: Path) -> None:
    folder = SUBSTITUTE.materialize(destination, UV)
    begun = time.monotonic()
    assert SUBSTITUTE.materialize(destination, Path("/nowhere/uv")) == folder
    assert time.monotonic() - begun < 1


def test_its_schema_names_every_resource(destination: Path) -> None:
    provider = Provider.start(SUBSTITUTE.materialize(destination, UV))
    schema = provider.schema()
    provider.close()
    assert schema["version"] == "1.2.1"
    assert {LOCAL, COPY} < schema["resources"].keys()
    connection = schema["types"]["command:remote:Connection"]
    assert connection["required"] == ["host"]
    assert connection["properties"]["privateKey"]["secret"] is True


def test_the_deprecated_copy_is_refused_in_the_preview(destination: Path) -> None:
    provider = Provider.start(SUBSTITUTE.materialize(destination, UV))
    inputs = {"connection": {"host": "h"}, "localPath": "/x", "remotePath": "/y"}
    _, failures = provider.check("command:remote:CopyFile", inputs)
    provider.close()
    assert "use command:remote:CopyToRemote" in failures[0]["reason"]
