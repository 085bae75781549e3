"""Ray and Python are compared across all nodes before any Ray starts."""

from __future__ import annotations

from components.versions import differences

HEAD = "ready architecture=x86_64 services=systemd easytier=2.6.4 ray=2.60.0 python=3.11.2 venv=/opt/x"


def test_nodes_of_one_version_pass() -> None:
    assert differences({"cloud-1": HEAD, "edge-1": HEAD.replace("x86_64", "aarch64").replace("/opt/x", "")}) is None


def test_every_node_that_differs_is_named_with_both_versions() -> None:
    other_python, other_ray = HEAD.replace("3.11.2", "3.11.9"), HEAD.replace("2.60.0", "2.59.1")
    told = str(differences({"cloud-1": HEAD, "edge-1": other_python, "edge-2": HEAD, "edge-3": other_ray}))
    assert "edge-1: Python is 3.11.9 there, and 3.11.2 on the head, cloud-1\n" in told
    assert "edge-3: Ray is 2.59.1 there, and 2.60.0 on the head, cloud-1\n" in told
    assert "edge-2" not in told
    assert "set cluster.repair to a new value" in told


def test_a_node_that_told_nothing_differs() -> None:
    assert "edge-1: Python is unknown there" in str(differences({"cloud-1": HEAD, "edge-1": ""}))
