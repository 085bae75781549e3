"""The core's snapshots become upstream's tables. The snapshots below were taken from a running core."""

from __future__ import annotations

from typing import Any

import pytest

from lab.easytier_release.standin.tables import pairs, peer_table, route_table, size

NODE: dict[str, Any] = {
    "hostname": "edge-1",
    "ipv4_addr": "10.10.0.11/24",
    "peer_id": 1,
    "stun_info": {"udp_nat_type": 5},
    "version": "2.6.4-81487c36",
}


def route(peer_id: int, name: str, address: int, cost: int, hop: int) -> dict[str, Any]:
    return {
        "cost": cost,
        "cost_latency_first": cost,
        "hostname": name,
        "ipv4_addr": {"address": {"addr": address}, "network_length": 24},
        "next_hop_peer_id": hop,
        "next_hop_peer_id_latency_first": hop,
        "path_latency": 3,
        "path_latency_latency_first": 4,
        "peer_id": peer_id,
        "stun_info": {},
        "version": "2.6.4-81487c36",
    }


def connection(name: str, latency: str, remote: str) -> dict[str, Any]:
    return {
        "conn_id": name,
        "stats": {"latency_us": latency, "rx_bytes": "1291", "tx_bytes": "1000"},
        "tunnel": {"resolved_remote_addr": {"url": remote}, "tunnel_type": remote.partition(":")[0]},
    }


BOOTSTRAP = route(2, "bootstrap", 0x0A0A0001, 1, 2)
HEAD = route(3, "head", 0x0A0A000A, 2, 2)
PEER: dict[str, Any] = {
    "peer_id": 2,
    "default_conn_id": "b",
    "conns": [
        connection("a", "900", "tcp://203.0.113.5:11010"),
        connection("b", "1342", "tcp://[2001:db8::5]:11010") | {"loss_rate": 0.25},
    ],
}


def test_this_node_comes_first_then_the_others_by_address() -> None:
    rows = peer_table(NODE, [HEAD, BOOTSTRAP], [PEER])
    assert [row["hostname"] for row in rows] == ["edge-1", "bootstrap", "head"]


def test_a_peer_with_a_connection_shows_the_one_in_use() -> None:
    assert peer_table(NODE, [BOOTSTRAP], [PEER])[1] == {
        "cidr": "10.10.0.1/24",
        "ipv4": "10.10.0.1",
        "hostname": "bootstrap",
        "cost": "p2p",
        "lat_ms": "1.34",
        "loss_rate": "25.0%",
        "rx_bytes": "2.58 kB",
        "tx_bytes": "2 kB",
        "tunnel_proto": "tcp,tcp6",
        "nat_type": "Unknown",
        "id": "2",
        "version": "2.6.4-81487c36",
    }


def test_a_peer_behind_others_is_relayed_and_has_no_tunnel() -> None:
    row = peer_table(NODE, [BOOTSTRAP, HEAD], [PEER])[2]
    assert (row["cost"], row["lat_ms"], row["tunnel_proto"], row["rx_bytes"]) == ("relay(2)", "4.00", "", "0 B")


def test_this_nodes_row_has_its_nat_type_and_dashes() -> None:
    row = peer_table(NODE, [], [])[0]
    assert (row["cost"], row["nat_type"], row["lat_ms"]) == ("Local", "PortRestricted", "-")


def test_a_node_without_address_has_empty_ones() -> None:
    bare = {key: value for key, value in BOOTSTRAP.items() if key != "ipv4_addr"}
    rows = peer_table(NODE | {"ipv4_addr": ""}, [bare], [])
    assert [(row["cidr"], row["ipv4"]) for row in rows] == [("", ""), ("", "")]


def test_routes_name_the_next_hop() -> None:
    rows = route_table(NODE, [BOOTSTRAP, HEAD], [PEER])
    assert [row["next_hop_hostname"] for row in rows] == ["Local", "DIRECT", "bootstrap"]
    assert rows[2]["next_hop_ipv4"] == "10.10.0.1/24"
    assert rows[2]["next_hop_lat"] == 1.342


def test_pairs_are_the_snapshots_as_they_are() -> None:
    assert pairs([BOOTSTRAP, HEAD], [PEER]) == [{"route": BOOTSTRAP, "peer": PEER}, {"route": HEAD, "peer": None}]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1291, "1.29 kB"), (2_000_000, "2 MB"), (5_500_000_000, "5.50 GB")],
)
def test_sizes_are_in_decimal_units(count: int, text: str) -> None:
    assert size(count) == text
