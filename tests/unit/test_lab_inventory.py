"""The settings that a lab prints for a Pulumi stack."""

from __future__ import annotations

from io import StringIO
from typing import Any, cast

import pytest
from ruamel.yaml import YAML

from config.load import parse
from lab import inventory
from lab.topology import Topology
from tests.example_settings import HOST_KEY


def printed(clouds: int, edges: int) -> dict[str, Any]:
    """The settings of a lab of that size, printed and read again."""
    lab = Topology("demo", clouds=clouds, edges=edges)
    settings = inventory.cluster(
        lab,
        {host.name: HOST_KEY for host in lab.hosts},
        easytier_sha256="0" * 64,
        uv_sha256="1" * 64,
        architecture="x86_64",
    )
    text = StringIO(inventory.render(settings))
    return cast("dict[str, Any]", YAML(typ="safe").load(text))


@pytest.mark.parametrize(("clouds", "edges"), [(1, 1), (2, 3), (50, 150)])
def test_the_program_accepts_them_as_they_are(clouds: int, edges: int) -> None:
    cluster = parse(printed(clouds, edges)["cluster"])
    assert len(cluster.hosts) == 1 + clouds + edges


def test_digests_and_versions_stay_text() -> None:
    cluster = printed(1, 1)["cluster"]
    assert cluster["overlay"]["easytier"]["sha256"] == {"x86_64": "0" * 64}
    assert cluster["ray"]["uv"]["sha256"] == {"x86_64": "1" * 64}
    assert cluster["ray"]["python"] == "3.11"


def test_edges_are_reached_through_the_bootstrap_and_cloud_nodes_have_a_public_address() -> None:
    cluster = printed(2, 1)["cluster"]
    assert cluster["edges"][0]["ssh"]["jump"] == "bootstrap"
    assert [node["public_address"] for node in cluster["cloud"]] == ["203.0.113.10", "203.0.113.11"]
    assert "jump" not in cluster["cloud"][0]["ssh"]
