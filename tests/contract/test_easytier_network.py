"""What the overlay is promised to be: addresses, payload, paths, who may join, how it comes back."""

from __future__ import annotations

import os
import signal
from typing import cast

import pytest

from tests.contract.easytier_harness import (
    BOOTSTRAP_URL,
    HEAD_URL,
    OVERLAY,
    SECRET,
    Host,
    Network,
    config,
    stays,
    wait_for,
)

pytest_plugins = ("tests.contract.easytier_fixtures",)
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for TUN devices and network namespaces"),
]

PEER_KEYS = [
    "cidr",
    "ipv4",
    "hostname",
    "cost",
    "lat_ms",
    "loss_rate",
    "rx_bytes",
    "tx_bytes",
    "tunnel_proto",
    "nat_type",
    "id",
    "version",
]


def reaches(source: Host, target: str) -> bool:
    """Whether a payload of several MTUs passes to a host's overlay address."""
    return source.send(OVERLAY[target]) is not None


def test_the_device_has_its_address_with_the_default_prefix_and_room_for_encryption(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap"))
    assert bootstrap.device() == {"mtu": 1360, "addresses": ["10.10.0.1/24"]}


def test_a_prefix_that_is_given_is_kept(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap", ipv4="10.10.0.1/20"))
    assert cast(dict[str, object], bootstrap.device())["addresses"] == ["10.10.0.1/20"]


def test_without_encryption_the_device_has_the_whole_mtu(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap", flags={"enable_encryption": False}))
    assert bootstrap.device() == {"mtu": 1380, "addresses": ["10.10.0.1/24"]}


def test_a_given_mtu_is_the_devices_less_what_encryption_takes(bootstrap: Host) -> None:
    bootstrap.up(config("bootstrap", flags={"mtu": 1300}))
    assert bootstrap.device() == {"mtu": 1280, "addresses": ["10.10.0.1/24"]}


def test_a_payload_of_several_mtus_passes_from_an_edge_to_bootstrap_and_head(
    bootstrap: Host, head: Host, edge: Host
) -> None:
    bootstrap.up(config("bootstrap"))
    head.up(config("head"))
    edge.up(config("edge-1"))
    wait_for("the edge reaches the bootstrap", lambda: reaches(edge, "bootstrap"))
    wait_for("the edge reaches the head", lambda: reaches(edge, "head"))
    wait_for("the head reaches the edge behind NAT", lambda: reaches(head, "edge-1"))


def test_the_peer_list_has_upstreams_shape(bootstrap: Host, head: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    head.up(config("head"))
    edge.up(config("edge-1"))
    wait_for("the edge sees all", lambda: edge.sees("bootstrap", "head"))
    peers = edge.peers()
    assert peers is not None
    assert [list(row) for row in peers.values()] == [PEER_KEYS] * 3
    assert all(isinstance(value, str) for row in peers.values() for value in row.values())
    assert next(iter(peers)) == "edge-1", "this node comes first"
    assert peers["edge-1"]["cost"] == "Local"
    assert {name: row["ipv4"] for name, row in peers.items()} == {
        name: OVERLAY[name] for name in ("edge-1", "bootstrap", "head")
    }
    assert {row["cidr"] for row in peers.values()} == {f"{OVERLAY[name]}/24" for name in peers}
    assert peers["bootstrap"]["cost"] == "p2p"
    assert peers["bootstrap"]["tunnel_proto"] == "tcp"
    assert float(peers["bootstrap"]["lat_ms"]) >= 0
    assert peers["bootstrap"]["loss_rate"].endswith("%")
    assert all(row["version"].startswith("2.6.4") for row in peers.values())


def test_an_edge_that_lists_the_heads_listener_talks_to_it_directly(bootstrap: Host, head: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    head.up(config("head"))
    edge.up(config("edge-1", peer=[{"uri": BOOTSTRAP_URL}, {"uri": HEAD_URL}]))
    wait_for("a direct path", lambda: (edge.peers() or {}).get("head", {}).get("cost") == "p2p", limit=5)
    bootstrap.stop()
    assert reaches(edge, "head"), "the loss of the bootstrap must not cut edge and head apart"


def test_edges_behind_different_nats_reach_each_other(bootstrap: Host, edge: Host, other_edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    edge.up(config("edge-1"))
    other_edge.up(config("edge-2"))
    wait_for("edge to edge", lambda: reaches(edge, "edge-2"))


def test_with_p2p_disabled_traffic_is_relayed_by_the_bootstrap(bootstrap: Host, head: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    head.up(config("head", flags={"disable_p2p": True}))
    edge.up(config("edge-1", flags={"disable_p2p": True}))
    wait_for("the edge reaches the head", lambda: reaches(edge, "head"))
    assert (edge.peers() or {})["head"]["cost"] == "relay(2)"


def test_a_private_bootstrap_refuses_another_network(bootstrap: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    stranger = edge.up(config("edge-1", network_identity={"network_name": "another"}))
    assert stays(lambda: bootstrap.sees() and edge.sees() and stranger.alive)
    assert not reaches(edge, "bootstrap")


def test_a_wrong_secret_joins_nothing_and_nobody_exits(bootstrap: Host, edge: Host) -> None:
    good = bootstrap.up(config("bootstrap"))
    wrong = edge.up(config("edge-1"), secret="not-the-secret")
    assert stays(lambda: good.alive and wrong.alive and edge.send(OVERLAY["bootstrap"], limit=0.5) is None)
    assert SECRET not in good.output
    assert "not-the-secret" not in wrong.output


@pytest.mark.parametrize(
    "secret",
    ["plain", "with $HOME and ${HOME}", "quotes \" and ' and \\ and #", " spaces ", "密钥-ключ", "-l 11010"],
)
def test_any_secret_from_the_environment_equals_the_same_in_a_file(secret: str, bootstrap: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"), secret=secret)
    identity = {"network_name": "rlinf-cloud-edge", "network_secret": secret}
    edge.up(config("edge-1", network_identity=identity), "--disable-env-parsing", secret=None)
    wait_for("both use one secret", lambda: reaches(edge, "bootstrap"), limit=5)


def test_a_restarted_node_has_its_address_back(bootstrap: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    core = edge.up(config("edge-1"))
    wait_for("the edge reaches the bootstrap", lambda: reaches(edge, "bootstrap"))
    core.end()
    edge.up(config("edge-1"))
    assert edge.device() == {"mtu": 1360, "addresses": ["10.10.0.11/24"]}
    wait_for("the edge reaches the bootstrap again", lambda: reaches(edge, "bootstrap"))


def test_a_killed_node_starts_again_at_once_under_the_same_device_name(bootstrap: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    edge.up(config("edge-1")).end(signal.SIGKILL)
    edge.up(config("edge-1"))
    wait_for("the edge reaches the bootstrap again", lambda: reaches(edge, "bootstrap"))


def test_edges_return_by_themselves_when_the_bootstrap_was_away(
    network: Network, bootstrap: Host, edge: Host, other_edge: Host
) -> None:
    first = bootstrap.up(config("bootstrap"))
    cores = [edge.up(config("edge-1")), other_edge.up(config("edge-2"))]
    wait_for("both edges have joined", lambda: bootstrap.sees("edge-1", "edge-2"))
    first.end(signal.SIGKILL)
    wait_for(
        "the edges notice",
        lambda: all("bootstrap" not in (host.peers() or {}) for host in (edge, other_edge)),
    )
    bootstrap.up(config("bootstrap"))
    wait_for("edge-1 reaches the bootstrap", lambda: reaches(edge, "bootstrap"), limit=10)
    wait_for("edge-2 reaches the bootstrap", lambda: reaches(other_edge, "bootstrap"), limit=10)
    assert all(core.alive for core in cores), "nobody had to restart them"


def test_a_device_that_someone_removed_comes_back(bootstrap: Host, edge: Host) -> None:
    bootstrap.up(config("bootstrap"))
    core = edge.up(config("edge-1"))
    assert edge.run("ip", "link", "delete", "et0").returncode == 0
    wait_for("the edge reaches the bootstrap again", lambda: reaches(edge, "bootstrap"))
    assert core.alive
