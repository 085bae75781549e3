"""Which hosts take part, with which ranks and addresses, on an overlay and without one."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import parse
from config.ranks import ranked
from tests.example_settings import direct, guide, guide_with_edges
from tests.settings_faults import faults, only_fault


def ranks(raw: dict[str, Any]) -> dict[str, int]:
    """Name to rank."""
    return {node.name: rank for rank, node in ranked(parse(raw)).items()}


class TestRanks:
    """RLinf's ranks are dense from 0 over the nodes that take part, and the head, the first cloud node, has 0."""

    def test_they_follow_the_order_listed(self) -> None:
        assert ranks(guide_with_edges(3)) == {"cloud-1": 0, "edge-1": 1, "edge-2": 2, "edge-3": 3}

    def test_a_node_can_have_one_of_its_own_and_the_others_fill_the_gaps(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][0]["rank"] = 3
        assert ranks(raw) == {"cloud-1": 0, "edge-2": 1, "edge-3": 2, "edge-1": 3}

    @pytest.mark.parametrize(
        ("given", "key", "rule"),
        [
            ({"cloud": 1}, "cluster.cloud[0].rank", "the head has rank 0"),
            ({"edge": 0}, "cluster.edges[0].rank", "rank 0 is the head's, the first cloud node: cloud-1"),
            ({"edge": 2}, "cluster.edges[0].rank", "ranks have no holes: 2 nodes take part, so they go from 0 to 1"),
        ],
    )
    def test_a_rank_that_rlinf_would_refuse_is_refused(self, given: dict[str, int], key: str, rule: str) -> None:
        raw = guide()
        if "cloud" in given:
            raw["cloud"][0]["rank"] = given["cloud"]
        if "edge" in given:
            raw["edges"][0]["rank"] = given["edge"]
        fault = only_fault(raw)
        assert fault.key == key
        assert rule in fault.rule

    def test_no_two_nodes_have_the_same(self) -> None:
        raw = guide_with_edges(2)
        for edge in raw["edges"]:
            edge["rank"] = 2
        fault = only_fault(raw)
        assert (fault.key, fault.value) == ("cluster.edges[1].rank", "2")
        assert "edge-1 has this one" in fault.rule


class TestWhoTakesPart:
    """Hosts are left out for now (`enabled: false`) or for good (`lost: true`), and the ranks close up."""

    @pytest.mark.parametrize("out", [{"enabled": False}, {"lost": True}])
    def test_the_ranks_close_up_and_come_back(self, out: dict[str, bool]) -> None:
        raw = guide_with_edges(3)
        raw["edges"][1] |= out
        assert ranks(raw) == {"cloud-1": 0, "edge-1": 1, "edge-3": 2}
        for key in out:
            del raw["edges"][1][key]
        assert ranks(raw)["edge-2"] == 2

    def test_a_rank_of_a_node_that_is_out_is_no_hole_and_no_double(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][0] |= {"rank": 1, "enabled": False}
        raw["edges"][1]["rank"] = 1
        assert ranks(raw) == {"cloud-1": 0, "edge-2": 1, "edge-3": 2}

    def test_the_next_cloud_node_becomes_head(self) -> None:
        raw = guide()
        raw["cloud"].append(
            {"name": "cloud-2", "overlay_ip": "10.10.0.20", "gpus": 4, "ssh": {"address": "203.0.113.20"}}
        )
        raw["cloud"][0]["enabled"] = False
        assert ranks(raw)["cloud-2"] == 0

    def test_one_cloud_node_is_needed(self) -> None:
        raw = guide()
        raw["cloud"][0]["enabled"] = False
        assert "cluster.cloud" in [fault.key for fault in faults(raw)]

    def test_one_bootstrap_is_needed(self) -> None:
        raw = guide()
        raw["bootstrap"]["lost"] = True
        raw["edges"][0]["ssh"]["jump"] = "cloud-1"
        assert only_fault(raw).key == "cluster.bootstrap.lost"

    def test_nothing_is_reached_through_a_lost_host(self) -> None:
        raw = guide_with_edges(2)
        raw["bootstrap"] = [
            raw["bootstrap"],
            {"name": "b2", "overlay_ip": "10.10.9.9", "ssh": {"address": "192.0.2.9"}},
        ]
        raw["bootstrap"][0] |= {"lost": True}
        raw["edges"][1] |= {"lost": True}
        fault = only_fault(raw)
        assert fault.key == "cluster.edges[0].ssh.jump"
        assert "bootstrap is lost" in fault.rule

    def test_a_placement_counts_only_those_that_take_part(self) -> None:
        raw = guide_with_edges(2)
        raw["rlinf"]["component_placement"]["env"]["placement"] = "0-1"
        parse(raw)
        raw["edges"][0]["enabled"] = False
        assert "the group edge has 1 host" in only_fault(raw).rule

    def test_a_group_with_nobody_left_is_no_place(self) -> None:
        raw = guide()
        raw["edges"][0]["enabled"] = False
        assert {fault.rule for fault in faults(raw)} == {
            "a group that components are placed on has a host that takes part; all of this one are out"
        }


class TestBootstraps:
    """One is written as an object, several as a list."""

    def test_a_list_of_one_is_the_same_as_the_object(self) -> None:
        raw = guide()
        one = parse(raw).bootstraps
        raw["bootstrap"] = [raw["bootstrap"]]
        assert parse(raw).bootstraps == one

    def test_keys_of_faults_are_those_that_were_written(self) -> None:
        raw = guide()
        raw["bootstrap"]["overlay_ip"] = "10.11.0.1"
        assert only_fault(raw).key == "cluster.bootstrap.overlay_ip"
        raw["bootstrap"] = [raw["bootstrap"]]
        assert only_fault(raw).key == "cluster.bootstrap[0].overlay_ip"
        raw["bootstrap"][0]["port"] = 7
        assert "cluster.bootstrap[0].port" in [fault.key for fault in faults(raw)]

    def test_an_overlay_needs_one(self) -> None:
        raw = guide()
        del raw["bootstrap"]
        raw["edges"][0]["ssh"].pop("jump")
        assert only_fault(raw).key == "cluster.bootstrap"

    def test_one_behind_a_jump_host_says_where_the_others_reach_it(self) -> None:
        raw = guide()
        raw["bootstrap"]["ssh"]["jump"] = "cloud-1"
        raw["edges"][0]["ssh"]["jump"] = "cloud-1"
        assert only_fault(raw).key == "cluster.bootstrap.public_address"

    def test_two_hosts_never_listen_at_the_same_endpoint(self) -> None:
        raw = guide()
        raw["cloud"][0]["public_address"] = "203.0.113.5"
        fault = only_fault(raw)
        assert fault.key == "cluster.cloud[0].public_address"
        assert "bootstrap listens at 203.0.113.5:11010" in fault.rule

    def test_ray_and_easytier_have_a_port_each(self) -> None:
        raw = guide()
        raw["ray"] = {"port": 11010}
        assert only_fault(raw).key == "cluster.ray.port"

    @pytest.mark.parametrize("port", [11009, 15910, 20001, 20500, 23000])
    @pytest.mark.parametrize("section", ["ray", "overlay"])
    def test_a_port_that_something_listens_at_on_every_host_is_refused(self, section: str, port: int) -> None:
        raw = guide()
        raw[section] = {"port": port}
        assert only_fault(raw).key == f"cluster.{section}.port"

    @pytest.mark.parametrize("cidr", ["10.10.0.0/31", "10.10.0.1/32", "127.0.0.0/8", "224.0.0.0/4", "0.0.0.0/0"])
    def test_the_range_is_one_that_hosts_can_have_addresses_in(self, cidr: str) -> None:
        raw = guide()
        raw["overlay"] = {"cidr": cidr}
        assert faults(raw)[0].key == "cluster.overlay.cidr"

    def test_a_robot_is_not_in_the_overlays_range(self) -> None:
        raw = guide()
        raw["edges"][0]["hardware"] = [{"type": "Franka", "robot_ip": "10.10.0.99"}]
        assert only_fault(raw).key == "cluster.edges[0].hardware[0].robot_ip"


class TestDirectMode:
    """Without `overlay`, every node already reaches every other, at its own address."""

    def test_it_needs_no_bootstrap_and_no_overlay_addresses(self) -> None:
        cluster = parse(direct())
        assert cluster.direct
        assert cluster.bootstraps == ()

    def test_an_overlay_with_nothing_in_it_is_all_defaults(self) -> None:
        cluster = parse(guide())
        assert cluster.overlay is not None
        assert str(cluster.overlay.cidr) == "10.10.0.0/24"

    def test_what_only_an_overlay_has_is_refused(self) -> None:
        raw = direct()
        raw["bootstrap"] = guide()["bootstrap"]
        raw["edges"][0] |= {"overlay_ip": "10.10.0.11", "public_address": "203.0.113.7"}
        found = faults(raw)
        assert [fault.key for fault in found] == [
            "cluster.bootstrap",
            "cluster.edges[0].overlay_ip",
            "cluster.edges[0].public_address",
        ]
        assert all("add `overlay: {}`" in fault.fix for fault in found)

    def test_what_only_direct_mode_has_is_refused_with_an_overlay(self) -> None:
        raw = guide()
        raw["device"] = "eth0"
        raw["edges"][0] |= {"address": "192.168.1.20", "device": "eth1"}
        assert [fault.key for fault in faults(raw)] == [
            "cluster.device",
            "cluster.edges[0].address",
            "cluster.edges[0].device",
        ]

    def test_every_node_needs_its_device(self) -> None:
        raw = direct()
        del raw["device"]
        assert [fault.key for fault in faults(raw)] == ["cluster.cloud[0].device"]

    def test_a_name_is_no_address_that_ray_can_be_bound_to(self) -> None:
        raw = direct()
        raw["cloud"][0]["ssh"]["address"] = "head.example.org"
        assert only_fault(raw).key == "cluster.cloud[0].address"
        raw["cloud"][0]["address"] = "192.0.2.10"
        parse(raw)

    @pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "2001:db8::1"])  # noqa: S104  # refused here
    def test_an_address_is_one_that_others_reach(self, address: str) -> None:
        raw = direct()
        raw["cloud"][0]["address"] = address
        assert "at which the other nodes reach this one" in only_fault(raw).rule

    def test_every_node_has_an_address_of_its_own(self) -> None:
        raw = direct()
        raw["edges"][0]["address"] = "192.0.2.10"
        assert "cloud-1 has this one" in only_fault(raw).rule


class TestEasyTiersFlags:
    """Flags have EasyTier's names and kinds; EasyTier itself passes over what it does not know."""

    def test_an_unknown_flag_is_named_with_the_nearest(self) -> None:
        raw = guide()
        raw["overlay"]["flags"] = {"latency-first": True}
        assert only_fault(raw).fix.startswith("write `latency_first`; ")

    @pytest.mark.parametrize("flag", ["dev_name", "mtu", "private_mode", "no_tun", "use_smoltcp", "quic_listen_port"])
    def test_what_this_program_sets_is_refused(self, flag: str) -> None:
        raw = guide()
        raw["overlay"]["flags"] = {flag: 1}
        fault = only_fault(raw)
        assert fault.key == f"cluster.overlay.flags.{flag}"
        assert "not known" not in fault.rule

    @pytest.mark.parametrize(
        ("flag", "value"),
        [("latency_first", "yes"), ("multi_thread_count", True), ("default_protocol", "wg"), ("data_compress_algo", 3)],
    )
    def test_a_value_of_another_kind_is_refused(self, flag: str, value: object) -> None:
        raw = guide()
        raw["overlay"]["flags"] = {flag: value}
        assert only_fault(raw).key == f"cluster.overlay.flags.{flag}"
