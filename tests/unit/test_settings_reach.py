"""How hosts are reached: each in one way, by a login or by a join script."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import parse
from config.models import Credentials
from config.ranks import ranked
from config.reach import way_in
from tests.example_settings import HOST_KEY, direct, guide, guide_with_edges
from tests.settings_faults import faults, only_fault


def joining(join: str, **more: Any) -> dict[str, Any]:
    """The guide's cluster with two edges, of which the second joins by a script."""
    raw = guide_with_edges(2)
    del raw["edges"][1]["ssh"]
    raw["edges"][1] |= {"join": join, **more}
    return raw


class TestOneWay:
    """Every host says in exactly one way how it is reached."""

    @pytest.mark.parametrize("ssh", [{}, {"user": "robot"}, None])
    def test_a_host_without_any_is_told_what_there_is(self, ssh: dict[str, str] | None) -> None:
        raw = guide()
        raw["edges"][0].pop("ssh")
        if ssh is not None:
            raw["edges"][0]["ssh"] = ssh
        fault = only_fault(raw)
        assert fault.key == "cluster.edges[0].ssh.address"
        assert "ssh.address or aws or join" in fault.rule

    def test_a_host_with_two_is_refused(self) -> None:
        raw = guide()
        raw["edges"][0]["join"] = "overlay"
        del raw["edges"][0]["ssh"]["jump"]
        fault = only_fault(raw)
        assert fault.key == "cluster.edges[0].join"
        assert "this one has ssh.address and join" in fault.rule

    def test_a_bootstrap_does_not_join(self) -> None:
        raw = guide()
        raw["bootstrap"]["join"] = "script"
        fault = only_fault(raw)
        assert (fault.key, fault.fix) == ("cluster.bootstrap.join", "write ssh with its address")

    @pytest.mark.parametrize("join", ["overlay", "script"])
    def test_the_head_does_not_join(self, join: str) -> None:
        raw = guide()
        raw["cloud"][0] |= {"join": join}
        del raw["cloud"][0]["ssh"]
        fault = only_fault(raw)
        assert fault.key == "cluster.cloud[0].join"
        assert "the Ray head" in fault.rule

    def test_a_cloud_node_that_is_not_the_head_may_join(self) -> None:
        raw = guide()
        raw["cloud"].append({"name": "cloud-2", "overlay_ip": "10.10.0.20", "gpus": 4, "join": "script"})
        assert [node.name for node in ranked(parse(raw)).values()] == ["cloud-1", "cloud-2", "edge-1"]


class TestJoin:
    """A host that joins keeps its rank from the first `up` on: the script that its owner gets holds it."""

    @pytest.mark.parametrize("join", ["overlay", "script"])
    @pytest.mark.parametrize("joined", [False, True])
    def test_its_rank_is_the_same_whether_it_has_joined_or_not(self, join: str, joined: bool) -> None:
        ranks = {node.name: rank for rank, node in ranked(parse(joining(join, joined=joined))).items()}
        assert ranks == {"cloud-1": 0, "edge-1": 1, "edge-2": 2}

    def test_over_the_overlay_we_log_in_through_the_first_bootstrap_that_is_there(self) -> None:
        raw = joining("overlay", ssh={"user": "robot", "port": 2222, "key_file": "~/.ssh/robot", "host_key": HOST_KEY})
        raw["bootstrap"] = [
            raw["bootstrap"] | {"lost": True},
            {"name": "b2", "overlay_ip": "10.10.9.9", "ssh": {"address": "192.0.2.9"}},
        ]
        raw["edges"][0]["ssh"]["jump"] = "b2"
        cluster = parse(raw)
        way = way_in(cluster, cluster.edges[1])
        assert way is not None
        assert (way.address, way.port, way.user) == ("10.10.1.3", 2222, "robot")
        assert way.credentials == Credentials(key_file="~/.ssh/robot")
        assert way.jump is not None
        assert way.jump.address == "192.0.2.9"

    def test_with_a_script_that_does_all_we_never_log_in(self) -> None:
        cluster = parse(joining("script", ssh={"user": "robot"}))
        assert way_in(cluster, cluster.edges[1]) is None

    def test_without_an_overlay_there_is_nothing_to_log_in_over(self) -> None:
        raw = direct()
        raw["edges"][0] |= {"join": "overlay", "address": "192.0.2.20"}
        del raw["edges"][0]["ssh"]
        fault = only_fault(raw)
        assert (fault.key, fault.value) == ("cluster.edges[0].join", "overlay")

    def test_without_an_overlay_a_script_can_do_it_at_an_address_that_is_given(self) -> None:
        raw = direct()
        del raw["edges"][0]["ssh"]
        raw["edges"][0]["join"] = "script"
        assert only_fault(raw).key == "cluster.edges[0].address"
        raw["edges"][0]["address"] = "192.0.2.20"
        parse(raw)

    @pytest.mark.parametrize("join", ["overlay", "script"])
    def test_it_has_no_jump(self, join: str) -> None:
        fault = only_fault(joining(join, ssh={"jump": "bootstrap"}))
        assert (fault.key, fault.fix) == ("cluster.edges[1].ssh.jump", "remove it")

    def test_it_is_no_jump(self) -> None:
        raw = joining("overlay")
        raw["edges"][0]["ssh"]["jump"] = "edge-2"
        assert "edge-2 itself joins by a script" in only_fault(raw).rule

    @pytest.mark.parametrize("key", ["port", "key_file", "host_key", "connect_timeout"])
    def test_nothing_says_how_to_log_in_where_nobody_does(self, key: str) -> None:
        value = {"port": 22, "key_file": "~/key", "host_key": HOST_KEY, "connect_timeout": 30}[key]
        assert only_fault(joining("script", ssh={key: value})).key == f"cluster.edges[1].ssh.{key}"

    def test_only_a_host_that_joins_has_joined(self) -> None:
        raw = guide()
        raw["edges"][0]["joined"] = True
        assert only_fault(raw).key == "cluster.edges[0].joined"

    def test_another_way_to_join_is_refused(self) -> None:
        raw = joining("vpn")
        assert "must be one of" in faults(raw)[0].rule
