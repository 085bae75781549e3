"""Ranks, peers and ports follow from the settings alone."""

from __future__ import annotations

from components.plan import RayPorts, make_plan
from config.defaults import PINNED_PORTS
from config.load import parse
from tests.example_settings import guide, guide_with_edges


def test_ranks_are_dense_from_zero_cloud_nodes_first() -> None:
    raw = guide_with_edges(3)
    raw["cloud"].append({**raw["cloud"][0], "name": "cloud-2", "overlay_ip": "10.10.0.12"})
    raw["cloud"][1]["ssh"] = {**raw["cloud"][1]["ssh"], "address": "203.0.113.11"}
    raw["cloud"][1]["public_address"] = "203.0.113.11"
    plan = make_plan(parse(raw))
    assert [(node.name, node.rank) for node in plan.nodes] == [
        ("cloud-1", 0),
        ("cloud-2", 1),
        ("edge-1", 2),
        ("edge-2", 3),
        ("edge-3", 4),
    ]
    assert [node.role for node in plan.nodes] == ["head", "worker", "worker", "worker", "worker"]


def test_the_bootstrap_peers_with_nobody_and_has_no_rank() -> None:
    (bootstrap,) = make_plan(parse(guide())).bootstraps
    assert (bootstrap.peers, bootstrap.rank, bootstrap.groups) == ((), None, ())


def test_an_edge_peers_with_every_cloud_node_that_has_a_public_address() -> None:
    raw = guide()
    head, edge = make_plan(parse(raw)).nodes
    assert edge.peers == ("tcp://203.0.113.5:11010", "tcp://203.0.113.10:11010")
    assert head.peers == ("tcp://203.0.113.5:11010",)
    del raw["cloud"][0]["public_address"]
    assert make_plan(parse(raw)).nodes[1].peers == ("tcp://203.0.113.5:11010",)


def test_the_bootstraps_public_address_is_what_others_dial() -> None:
    raw = guide()
    raw["bootstrap"]["public_address"] = "2001:db8::5"
    raw["overlay"] = {"port": 12010}
    assert make_plan(parse(raw)).nodes[0].peers == ("tcp://[2001:db8::5]:12010",)


def test_every_ray_port_is_below_the_ephemeral_range_and_in_the_firewall() -> None:
    ports = RayPorts(gcs=6379)
    assert len(set(ports.fixed)) == len(ports.fixed)
    assert all(port < 32768 for port in (*ports.fixed, ports.last_worker))
    allowed = ports.firewall.split(", ")
    assert set(map(str, ports.fixed)) < set(allowed)
    assert "20100-21099" in allowed
    pinned = {port for ports in PINNED_PORTS.values() for port in ports}
    workers = range(ports.first_worker, ports.last_worker + 1)
    assert {*ports.fixed, *workers} - {ports.gcs} <= pinned, "the settings must not give these to anything else"


def test_ray_start_pins_every_port_that_a_flag_can_pin() -> None:
    ports = RayPorts(gcs=6379)
    head = ports.arguments("head", "10.10.0.10").split()
    worker = ports.arguments("worker", "10.10.0.10").split()
    assert head[:3] == ["--head", "--port=6379", "--dashboard-host=127.0.0.1"]
    assert worker[0] == "--address=10.10.0.10:6379"
    for flag in ("node-manager", "object-manager", "runtime-env-agent", "dashboard-agent-grpc", "metrics-export"):
        assert any(argument.startswith(f"--{flag}-port=") for argument in worker)
