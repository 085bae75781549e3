"""What a lab consists of, by its name and numbers alone."""

from __future__ import annotations

import ipaddress
from typing import cast

import pytest

from lab import topology
from lab.errors import LabError
from lab.topology import MAX_CLOUDS, MAX_EDGES, Topology


def test_the_smallest_lab_has_the_guides_addresses() -> None:
    lab = Topology("demo", clouds=1, edges=1)
    assert [(host.name, host.address, host.overlay_ip, host.jump) for host in lab.hosts] == [
        ("bootstrap", "203.0.113.5", "10.10.0.1", None),
        ("cloud-1", "203.0.113.10", "10.10.0.10", None),
        ("edge-1", "192.168.1.20", "10.10.0.11", "bootstrap"),
    ]


def test_no_two_things_of_the_largest_lab_share_an_address_or_a_name() -> None:
    lab = Topology("demo", clouds=MAX_CLOUDS, edges=MAX_EDGES)
    public = [host.address for host in lab.hosts] + [router.public_address for router in lab.routers]
    public += [router.lan_address for router in lab.routers]
    public += [topology.MIRROR_ADDRESS, topology.OPERATOR_ADDRESS]
    for things in (public, [host.name for host in lab.hosts], [host.overlay_ip for host in lab.hosts]):
        assert len(set(things)) == len(things)
    for address in (*public, *(host.overlay_ip for host in lab.hosts)):
        assert 0 < int(ipaddress.ip_address(address)) & 0xFF < 255


def test_an_edge_is_behind_the_router_of_its_own_network() -> None:
    lab = Topology("demo", clouds=1, edges=3)
    edge, router = lab.host("edge-3"), lab.routers[2]
    assert (edge.gateway, edge.bridge, edge.address) == (router.lan_address, router.lan_bridge, router.inside)
    assert ipaddress.ip_address(edge.address) in ipaddress.ip_network(router.lan_network)


def test_device_names_fit_what_linux_allows() -> None:
    for router in Topology("demo", clouds=1, edges=MAX_EDGES).routers:
        assert len(router.lan_bridge) <= 15
        assert len(f"router-{router.number}") <= 15


@pytest.mark.parametrize(
    ("clouds", "edges", "message"),
    [
        (0, 1, "--clouds 0"),
        (MAX_CLOUDS + 1, 1, f"1 to {MAX_CLOUDS} cloud nodes"),
        (1, -1, "--edges -1"),
        (1, MAX_EDGES + 1, f"0 to {MAX_EDGES} edges"),
    ],
)
def test_numbers_out_of_range_are_refused_with_the_range(clouds: int, edges: int, message: str) -> None:
    with pytest.raises(LabError, match=message):
        Topology("demo", clouds=clouds, edges=edges)


@pytest.mark.parametrize("name", ["", "Demo", "1st", "a_b", "a/b", "..", "a" * 21, "a-", "a--b", "a b"])
def test_a_name_that_can_not_be_part_of_other_names_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="a lab's name has"):
        topology.check_name(name)


@pytest.mark.parametrize("name", ["demo-op", "demo-mirror", "demo-nat-1"])
def test_a_name_that_would_be_taken_for_a_part_of_another_lab_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="would be taken for a part of a lab"):
        topology.check_name(name)


@pytest.mark.parametrize("name", ["demo", "test-12345-small", "a", "x1", "test-4194304-other"])
def test_a_plain_name_is_accepted(name: str) -> None:
    topology.check_name(name)


def test_namespaces_of_one_lab_are_not_taken_for_those_of_another() -> None:
    own = [
        topology.world_namespace("a"),
        topology.operator_namespace("a"),
        topology.mirror_namespace("a"),
        topology.router_namespace("a", 12),
    ]
    others = [topology.world_namespace("a-b"), topology.operator_namespace("b"), "rce-a-nat-", "rce-ab", "a"]
    assert all(topology.is_namespace_of("a", namespace) for namespace in own)
    assert not any(topology.is_namespace_of("a", namespace) for namespace in others)


def test_an_unknown_host_is_refused_with_those_there_are() -> None:
    with pytest.raises(LabError, match="no host is called edge-2; the hosts are bootstrap, cloud-1, edge-1"):
        Topology("demo", clouds=1, edges=1).host("edge-2")


class TestKinds:
    """An edge may run otherwise than by systemd, and only an edge."""

    def test_an_edge_runs_as_asked_and_all_else_by_systemd(self) -> None:
        lab = Topology("demo", clouds=1, edges=2, kinds={"edge-2": "container"})
        assert [host.kind for host in lab.hosts] == ["systemd", "systemd", "systemd", "container"]

    @pytest.mark.parametrize("name", ["cloud-1", "bootstrap", "edge-3", ""])
    def test_a_kind_for_what_is_no_edge_of_the_lab_is_refused(self, name: str) -> None:
        with pytest.raises(LabError, match=f"--edge-kind {name}=container: the lab has no edge of that name"):
            Topology("demo", clouds=1, edges=2, kinds={name: "container"})

    def test_an_unknown_kind_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(LabError, match="one of systemd, container, container-no-cap, container-no-tun"):
            Topology("demo", clouds=1, edges=1, kinds={"edge-1": cast("topology.Kind", "podman")})
