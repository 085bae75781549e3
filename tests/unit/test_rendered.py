"""What is rendered for RLinf, EasyTier, Ray and people, against golden files.

`pytest tests/unit --rewrite-golden` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from components.easytier_config import render_toml
from components.outputs import outputs, ssh_config
from components.plan import make_plan
from components.rlinf import rank_ranges, render_config
from components.token import ray_token
from config.load import parse
from tests.example_settings import guide, guide_with_edges

GOLDEN = Path(__file__).parent.parent / "golden"

# The guide's own block, key for key.
GUIDE_CLUSTER: dict[str, Any] = {
    "num_nodes": 2,
    "node_groups": [{"label": "cloud", "node_ranks": "0"}, {"label": "edge", "node_ranks": "1"}],
    "component_placement": {
        "actor": {"node_group": "cloud", "placement": "0-3"},
        "rollout": {"node_group": "edge", "placement": "0-0"},
        "env": {"node_group": "edge", "placement": "0-0"},
    },
}


def test_the_guides_example_renders_the_guides_block() -> None:
    cluster = parse(guide())
    rendered = YAML(typ="safe").load(render_config(cluster))
    assert rendered == {"cluster": GUIDE_CLUSTER}


def test_ranks_and_placements_are_quoted_for_yaml_1_1() -> None:
    raw = guide()
    raw["rlinf"]["component_placement"]["actor"]["placement"] = "1:0"
    cluster = parse(raw)
    assert 'placement: "1:0"' in render_config(cluster)


def test_ranks_are_written_as_ranges() -> None:
    assert rank_ranges([0]) == "0"
    assert rank_ranges([3, 1, 2, 5]) == "1-3,5"


@pytest.mark.parametrize("name", ["rlinf_config", "readme", "launch", "ssh_config"])
def test_an_output_is_as_reviewed(name: str, rewrite_golden: bool) -> None:
    cluster = parse(guide())
    text = str(dict(outputs(cluster, make_plan(cluster)))[name])
    compare(f"{name}.txt", text, rewrite=rewrite_golden)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_easytier_file_is_as_reviewed(index: int, rewrite_golden: bool) -> None:
    cluster = parse(guide())
    member = make_plan(cluster).members[index]
    assert cluster.overlay is not None
    compare(f"easytier-{member.name}.toml", render_toml(cluster.overlay, member), rewrite=rewrite_golden)


def test_hostile_names_stay_inside_their_toml_strings() -> None:
    raw = guide()
    network = 'a"\nb'.replace("\n", "") + "$(id) ${HOME} \\ 'x'"
    raw["overlay"] = {"network": network}
    cluster = parse(raw)
    assert cluster.overlay is not None
    document = tomllib.loads(render_toml(cluster.overlay, make_plan(cluster).bootstraps[0]))
    assert document["network_identity"] == {"network_name": network}


def test_the_overlay_ips_are_the_guides() -> None:
    cluster = parse(guide())
    assert outputs(cluster, make_plan(cluster))["overlay_ips"] == {
        "bootstrap": "10.10.0.1",
        "cloud-1": "10.10.0.10",
        "edge-1": "10.10.0.11",
    }


def test_ssh_takes_the_ssh_config_and_jumps(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(ssh_config(parse(guide_with_edges(2))))
    told = subprocess.run(["ssh", "-G", "-F", file, "edge-2"], capture_output=True, text=True, check=True).stdout
    options = dict(line.split(" ", 1) for line in told.splitlines() if " " in line)
    assert (options["user"], options["hostname"], options["proxyjump"]) == ("debian", "192.168.0.3", "bootstrap")
    assert options["knownhostscommand"].startswith("/bin/echo edge-2 ssh-ed25519 ")


def test_the_token_is_derived_and_does_not_contain_the_secret() -> None:
    # RFC 5869 with SHA-256, no salt; computed with OpenSSL's HKDF.
    expected = subprocess.run(
        shlex.split(
            "openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt key:correct-horse-battery"
            " -kdfopt 'info:rlinf-cloud-edge: ray authentication token' HKDF"
        ),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ray_token("correct-horse-battery") == expected.strip().replace(":", "").lower()


def compare(name: str, text: str, *, rewrite: bool) -> None:
    """Compares with a golden file, or rewrites it."""
    path = GOLDEN / name
    if rewrite:
        path.write_text(text)
    assert text == path.read_text(), f"{name} differs; see the module's docstring"
