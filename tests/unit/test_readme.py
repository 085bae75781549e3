"""What the README tells people to write works."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML

from config.load import parse
from tests.example_settings import HOST_KEY

CLONE = Path(__file__).parents[2]
README = (CLONE / "README.md").read_text(encoding="utf-8")


def test_the_inventory_to_start_from_is_right_but_for_the_host_keys() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    document = YAML(typ="safe").load(block.replace("ssh-ed25519 AAAAC3Nz…", HOST_KEY))
    cluster = parse(document["config"]["rlinf-cloud-edge:cluster"])
    assert [host.name for host in cluster.hosts] == ["bootstrap", "cloud-1", "edge-1"]


def test_the_ways_in_that_are_explained_are_settings() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (CLONE / "docs" / "hosts.md").read_text(encoding="utf-8"), re.DOTALL)
    cluster = parse(YAML(typ="safe").load(block)["config"]["rlinf-cloud-edge:cluster"])
    assert [host.name for host in cluster.hosts] == ["bootstrap", "cloud-1", "edge-1"]


def test_every_link_to_a_file_leads_somewhere() -> None:
    pages = [CLONE / "README.md", CLONE / "SECURITY.md", *(CLONE / "docs").glob("*.md"), CLONE / "lab" / "README.md"]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
