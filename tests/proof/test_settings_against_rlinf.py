"""Settings against RLinf's own parsers: thousands of generated ones through both.

script/test proof --generated 10000
script/test proof --hypothesis-seed 1      other settings than the same ones each time
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings

from tests.proof.agreement import Case, Tally, agree
from tests.proof.breaks import BREAKS, broken
from tests.proof.choices import Choices, chosen
from tests.proof.drafts import Settings, draft
from tests.proof.handmade import machine, on
from tests.proof.handmade import settings as wrote
from tests.proof.rlinf import Oracle


def case(some: Choices) -> Case:
    """Right settings or broken ones."""
    if some.flip():
        how, changed = broken(some)
        return Case(changed, broken=how)
    right = draft(some)
    return Case(right.settings, meant=right.places)


def test_what_we_accept_rlinf_accepts_and_places_as_we_say_and_what_we_refuse_it_refuses(
    oracle: Oracle, pytestconfig: pytest.Config
) -> None:
    count: int = pytestconfig.option.generated
    tally = Tally()

    @settings(
        max_examples=count,
        # The same settings each time, unless a seed is given.
        derandomize=pytestconfig.getoption("--hypothesis-seed") is None,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
    )
    @given(chosen(case))
    def check(drawn: Case) -> None:
        note(str(drawn))
        agree(oracle, drawn, tally)

    check()
    write_out(pytestconfig, str(tally))
    # Settings that are all of one kind would prove little.
    assert tally.outcomes["accepted by both"] > count / 4
    assert tally.outcomes["refused by both"] > count / 8
    assert set(tally.broken) == set(BREAKS) or count < 1000


FRANKA: Settings = {"type": "Franka", "robot_ip": "172.16.0.2"}
TURTLE: Settings = {"type": "Turtle2"}

# Where one of the two parsers had it otherwise once, or where it is easily had otherwise.
ACCEPTED, REFUSED = "accepted by both", "refused by both"
BY_HAND = {
    "a group has the robots of its nodes, whichever group declares them": (
        ACCEPTED,
        wrote(
            [machine(group=["a", "b"], robots=[{**TURTLE, "group": "a"}]), machine(group="b", robots=[TURTLE])],
            {"env": on("b", "0-1")},
        ),
    ),
    "a robot whose group is written is the same as one whose group is not": (
        REFUSED,
        wrote([machine(group="a", robots=[TURTLE, {**TURTLE, "group": "a"}])], {"env": on("a", 0)}),
    ),
    "two robots of a host differ in what is written": (
        ACCEPTED,
        wrote([machine(robots=[FRANKA, {**FRANKA, "robot_ip": "172.16.0.3"}])], {"env": on("cloud", "0-1")}),
    ),
    "a variable named as no field of a robot does not matter": (
        ACCEPTED,
        wrote(
            [{**machine(robots=[FRANKA, {**FRANKA, "robot_ip": "172.16.0.3"}]), "env": {"GROUP": "a", "TYPE": "b"}}],
            {"env": on("cloud", "0-1")},
        ),
    ),
    "several robots share a variable by commas": (
        REFUSED,
        wrote(
            [{**machine(robots=[FRANKA, {**FRANKA, "robot_ip": "172.16.0.3"}]), "env": {"ROBOT_IP": "172.16.0.4"}}],
            {"env": on("cloud", "0-1")},
        ),
    ),
    "labels may have spaces around them, and stand in a list": (
        ACCEPTED,
        wrote(
            [machine(1, group="a"), machine(1, group="b")],
            {"env": on(" a", 0), "actor": {"node_group": ["a", "b"], "placement": "all"}},
        ),
    ),
    "a group that is all digits": (ACCEPTED, wrote([machine(1, group=4090)], {"actor": on(4090, 0)})),
    "ranges may have spaces in them": (ACCEPTED, wrote([machine(2)], {"actor": "0 - 1 : 0 - 3"})),
    "nodes without accelerators count for nothing beside one that has some": (
        REFUSED,
        wrote(
            [machine(), machine(2, group="cloud"), machine(group="cloud")],
            {"actor": on("cloud", "0-1"), "env": on("cloud", 2)},
        ),
    ),
    "where one of two groups has no hardware, nodes are placed on": (
        REFUSED,
        wrote([machine(4), machine()], {"actor": on("cloud,edge", "0-1"), "env": on("cloud,edge", 2)}),
    ),
    "groups with a node in common are not placed on by nodes": (
        REFUSED,
        wrote([machine(group=["a", "b"]), machine(group="b")], {"actor": on("a,b", 0)}),
    ),
    "groups with a node in common are placed on by accelerators": (
        ACCEPTED,
        wrote([machine(2, group=["a", "b"]), machine(1, group="b")], {"actor": on("a,b", "0-4")}),
    ),
    "a process has resources of one kind": (
        REFUSED,
        wrote([machine(1, group=["a", "b"], robots=[{**TURTLE, "group": "b"}])], {"env": on("a,b", "0-1:0")}),
    ),
    "processes of one component may have resources of two kinds": (
        ACCEPTED,
        wrote([machine(1, group=["a", "b"], robots=[{**TURTLE, "group": "b"}])], {"env": on("a,b", "0-1")}),
    ),
    "processes come in the order of their nodes": (
        REFUSED,
        wrote([machine(1), machine(1)], {"actor": on("edge,cloud", "0-1")}),
    ),
    "no node takes part": (REFUSED, wrote([{**machine(1), "enabled": False}], {"actor": "all"})),
    "a profiler may be null": (ACCEPTED, wrote([machine(1)], {"actor": 0}, options={"profiling": None})),
    "a profiler is one that RLinf knows": (
        REFUSED,
        wrote([machine(1)], {"actor": 0}, options={"profiling": {"backend": ["nsight"]}}),
    ),
    "a variable stands once in a group, for whatever hosts": (
        REFUSED,
        wrote(
            [machine(), machine(group="cloud")],
            {"actor": 0},
            node_groups={
                "cloud": {"env_configs": [{"hosts": [host], "env_vars": {"A": host}} for host in ("h0", "h1")]}
            },
        ),
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_both_agree_on(oracle: Oracle, case: str) -> None:
    verdict, raw = BY_HAND[case]
    tally = Tally()
    agree(oracle, Case(raw), tally)
    assert tally.outcomes == {verdict: 1}


def write_out(config: pytest.Config, text: str) -> None:
    """Shows a text whether or not output is captured."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n{text}")
