"""The examples in config/, as they stand: the schema accepts them, and so does the program."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.outputs import outputs
from components.plan import make_plan
from components.rlinf import render_config
from config import schema
from config.load import read
from config.reach import way_in
from tests.example_settings import guide

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "config").glob("Pulumi.example-*.yaml"))
FIRST_LINE = "# yaml-language-server: $schema=cluster.schema.json"
KEY = "rlinf-cloud-edge:cluster"


@functools.cache
def validator() -> Any:
    # The package has no types.
    jsonschema: Any = importlib.import_module("jsonschema")
    return jsonschema.Draft7Validator(schema.schema(), format_checker=jsonschema.FormatChecker())


def problems(document: object) -> list[str]:
    """What an editor would mark in a file of that content."""
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator().iter_errors(document)
    ]


def document(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def example(name: str) -> dict[str, Any]:
    """The `cluster` object of an example."""
    return document(ROOT / "config" / f"Pulumi.example-{name}.yaml")["config"][KEY]


class TestTheExamples:
    """Each can be copied as it is and started from."""

    def test_there_is_one_for_each_way_to_have_hosts(self) -> None:
        names = {path.name.removeprefix("Pulumi.example-").removesuffix(".yaml") for path in EXAMPLES}
        assert {"existing-hosts", "direct", "two-clouds-four-edges", "franka", "join", "dev", "prod"} <= names

    @pytest.mark.parametrize("path", [*EXAMPLES, ROOT / "config" / "shared.yaml"], ids=lambda path: path.name)
    def test_the_schema_is_named_first_and_accepts_it(self, path: Path) -> None:
        assert path.read_text().splitlines()[0] == FIRST_LINE
        assert problems(document(path)) == []

    @pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
    def test_the_program_accepts_it_and_renders_all_it_promises(self, path: Path) -> None:
        cluster, base = read(document(path)["config"][KEY], ROOT)
        plan = make_plan(cluster)
        assert outputs(cluster, plan, base)["rlinf_config"].startswith("cluster:\n")
        assert [node.rank for node in plan.nodes] == list(range(len(plan.nodes)))

    @pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
    def test_every_address_is_a_private_one_or_one_for_documentation(self, path: Path) -> None:
        cluster, _ = read(document(path)["config"][KEY], ROOT)
        ranges = ("192.0.2.", "198.51.100.", "203.0.113.", "192.168.")
        for host in cluster.hosts:
            way = way_in(cluster, host)
            assert way is None or host.aws is not None or way.host_key is not None, (
                "an example shows how hosts are told apart"
            )
            assert host.ssh.address is None or host.ssh.address.startswith(ranges)

    def test_the_first_one_is_the_guides_cluster(self) -> None:
        cluster, _ = read(example("existing-hosts"), ROOT)
        assert render_config(cluster) == render_config(read(guide(), ROOT)[0])

    def test_dev_and_prod_share_everything_but_what_differs(self) -> None:
        dev, prod = (read(example(name), ROOT)[0] for name in ("dev", "prod"))
        assert (dev.ssh, dev.ray) == (prod.ssh, prod.ray)
        assert dev.overlay is not None
        assert prod.overlay is not None
        assert dev.overlay.cidr == prod.overlay.cidr
        assert (dev.overlay.network, prod.overlay.network) == ("rlinf-dev", "rlinf-prod")
        assert {host.ssh.address for host in dev.hosts}.isdisjoint(host.ssh.address for host in prod.hosts)

    def test_a_host_that_is_out_and_a_rank_of_its_own_are_shown(self) -> None:
        cluster, _ = read(example("two-clouds-four-edges"), ROOT)
        ranks = {node.name: node.rank for node in make_plan(cluster).members}
        assert (ranks["sim-3"], ranks["workstation"]) == (None, 2)


class TestTheSchema:
    """Editors complete and check what the program accepts, and nothing else."""

    def test_it_is_in_step_with_the_models(self) -> None:
        assert schema.PATH.read_text() == schema.render(), "run: python -m config.schema"

    def test_every_field_is_described_and_every_object_is_closed(self) -> None:
        for where, node in schemas(schema.schema(), "#"):
            for name, field in node.get("properties", {}).items():
                assert field.get("description"), f"{where}/{name}"
            if "properties" in node or "patternProperties" in node:
                assert node.get("additionalProperties") is False, where

    @pytest.mark.parametrize(
        "change",
        [
            {"edgs": []},
            {"cloud": []},
            {"ssh": {"port": "22"}},
            {"ssh": {"port": 0}},
            {"overlay": {"flags": {"latency-first": True}}},
            {"overlay": {"easytier": {"sha256": {"x86_64": "abc"}}}},
            {"bootstrap": [{"overlay_ip": "10.10.0.1", "ssh": {"adress": "203.0.113.5"}}]},
            {"bootstrap": []},
            {"rlinf": {}},
            {"rlinf": {"component_placement": {"actor,": 0}}},
            {"rlinf": {"component_placement": {"actor": {"node_group": "cloud"}}}},
            {"rlinf": {"component_placement": {"actor": "0;1"}}},
        ],
    )
    def test_what_a_single_field_does_not_allow_is_marked(self, change: dict[str, Any]) -> None:
        assert problems({"config": {KEY: guide()}}) == []
        assert problems({"config": {KEY: guide() | change}})

    @pytest.mark.parametrize(
        "hardware", [{"type": "Frank"}, {"robot_ip": "192.0.2.2"}, {"type": "Turtle2", "robot_ip": "192.0.2.2"}]
    )
    def test_a_robot_of_an_unknown_kind_is_marked(self, hardware: dict[str, Any]) -> None:
        raw = guide()
        raw["edges"][0]["hardware"] = [hardware]
        assert problems({"config": {KEY: raw}})

    @pytest.mark.parametrize("key", ["rlinf-cloud-edge:clster", "cluster"])
    def test_an_unknown_key_of_this_project_is_marked(self, key: str) -> None:
        assert problems({"config": {key: guide()}})

    def test_keys_of_others_are_left_alone(self) -> None:
        assert problems({"config": {KEY: guide(), "aws:region": "eu-central-1"}, "encryptionsalt": "v1:x"}) == []

    def test_a_secret_in_plain_text_is_marked(self) -> None:
        name = "rlinf-cloud-edge:networkSecret"
        assert problems({"config": {KEY: guide(), name: "a secret in plain text"}})
        assert problems({"config": {KEY: guide(), name: {"secure": "v1:x"}}}) == []

    def test_a_password_that_settings_name_is_a_secret(self) -> None:
        raw = guide()
        raw["edges"][0]["ssh"]["password_secret"] = "robotPassword"
        name = "rlinf-cloud-edge:robotPassword"
        assert problems({"config": {KEY: raw, name: {"secure": "v1:x"}}}) == []
        assert problems({"config": {KEY: raw, name: "a password in plain text"}})

    @pytest.mark.parametrize("jump", ["bootstrap", {"address": "2001:db8::7", "user": "gate"}])
    def test_a_jump_is_a_name_or_a_bastion(self, jump: object) -> None:
        raw = guide()
        raw["edges"][0]["ssh"]["jump"] = jump
        assert problems({"config": {KEY: raw}}) == []

    @pytest.mark.parametrize("jump", [7, {"user": "gate"}, {"address": "a", "jump": "b"}, "Not A Name"])
    def test_what_is_neither_is_marked(self, jump: object) -> None:
        raw = guide()
        raw["edges"][0]["ssh"]["jump"] = jump
        assert problems({"config": {KEY: raw}})

    @pytest.mark.parametrize(
        "texts",
        [
            {"group": 4090},
            {"env": {"OMP_NUM_THREADS": 32}},
            {"group": ["a", 1]},
        ],
    )
    def test_a_number_may_stand_where_a_text_is_meant(self, texts: dict[str, Any]) -> None:
        raw = guide()
        raw["edges"][0] |= texts
        assert problems({"config": {KEY: raw}}) == []

    def test_a_stack_that_extends_others_may_leave_out_what_they_say(self) -> None:
        part = {"extends": "shared.yaml", "rlinf": {"component_placement": {"actor": {"node_group": "cloud"}}}}
        assert problems({"config": {KEY: part}}) == []
        assert problems({"config": {KEY: part | {"edges": [{"overlay_ip": "10.10.0.11"}]}}})
        assert problems({"config": {KEY: part | {"edgs": []}}})
        del part["extends"]
        assert problems({"config": {KEY: part}})


def schemas(node: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below a node, with its path."""
    if isinstance(node, list):
        for index, each in enumerate(node):
            yield from schemas(each, f"{where}/{index}")
    elif isinstance(node, dict):
        yield where, node
        for key, value in node.items():
            if key in {"properties", "patternProperties", "$defs"}:
                for name, each in value.items():
                    yield from schemas(each, f"{where}/{name}")
            elif key not in {"default", "const", "enum", "required"}:
                yield from schemas(value, f"{where}/{key}")
