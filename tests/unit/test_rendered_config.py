"""The RLinf config, rendered: read back as RLinf's loader reads it, it says what the settings say."""

from __future__ import annotations

from typing import Any

import pytest
import yaml  # PyYAML, which RLinf's loader is built on: YAML 1.1

from components.rlinf import config_name, render_config
from config.base_config import split
from config.load import parse
from config.yaml_text import FileError
from tests.example_settings import guide, guide_with_edges

# A config as people keep it: comments everywhere, odd spacing, texts over several lines.
BASE = """\
# Training of the arm. Do not touch without asking.
defaults:
  - env/maniskill@env.train   # simulated
  - override hydra/job_logging: stdout

hydra:
  run: {dir: .}


cluster:   # one node, for now
    num_nodes: 1
    # the old place
    component_placement:
        actor, rollout: 0-7  # all of it
    auto_scheduler: True
    net_emulation:
        # slow line
        enabled: yes
        pairs: [ {src: "Env:0-3",
                  delay_ms: 10} ]
    # and no more

# The runner.
runner:
  name: "x"   # quoted
  note: |
    cluster:
      not the block

  ratio: 1e-3

actor:   {lr:   0.01,  tokens: [ 1,2,
   3 ] }
# the end, without a newline"""


def block(raw: dict[str, Any]) -> dict[str, Any]:
    """The rendered block as YAML 1.1 reads it."""
    return yaml.safe_load(render_config(parse(raw)))["cluster"]


class TestTheBlock:
    """Hosts, groups and placements, with ranks in place of names."""

    def test_nodes_that_are_out_are_not_counted(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][0]["enabled"] = False
        raw["edges"][2]["lost"] = True
        rendered = block(raw)
        assert rendered["num_nodes"] == 2
        assert rendered["node_groups"] == [
            {"label": "cloud", "node_ranks": "0"},
            {"label": "edge", "node_ranks": "1"},
        ]

    def test_groups_come_in_the_order_of_their_first_rank(self) -> None:
        raw = guide_with_edges(3)
        raw["edges"][0]["group"] = "z"
        raw["edges"][1]["group"] = ["a", "z"]
        raw["edges"][2]["rank"] = 1
        assert [(group["label"], group["node_ranks"]) for group in block(raw)["node_groups"]] == [
            ("cloud", "0"),
            ("edge", "1"),
            ("z", "2-3"),
            ("a", "3"),
        ]

    def test_both_forms_of_placement_are_kept(self) -> None:
        raw = guide()
        raw["rlinf"]["component_placement"] = {
            "actor, critic": "1:0",
            "rollout": {"placement": "all"},
            "env": {"node_group": ["cloud", "edge"], "placement": "0-1"},
            "agent": {"node_group": "node", "placement": "0-1:0-3"},
        }
        raw["rlinf"]["component_placement"]["actor, critic"] = "0:0-1"
        assert block(raw)["component_placement"] == {
            "actor, critic": "0:0-1",
            "rollout": {"placement": "all"},
            "env": {"node_group": "cloud,edge", "placement": "0-1"},
            "agent": {"node_group": "node", "placement": "0-1:0-3"},
        }

    def test_environments_have_ranks_and_lists_of_one_variable(self) -> None:
        raw = guide_with_edges(3)
        raw["rlinf"]["node_groups"] = {
            "cloud": {"ignore_hardware": True},
            "edge": {
                "env_configs": [
                    {"hosts": ["edge-3", "edge-1"], "env_vars": {"A": 32, "B": "on"}},
                    {"hosts": ["edge-2"], "python_interpreter_path": "/opt/venv/bin/python"},
                ]
            },
        }
        raw["rlinf"]["component_placement"]["actor"]["placement"] = 0
        cloud, edge = block(raw)["node_groups"]
        assert cloud == {"label": "cloud", "node_ranks": "0", "ignore_hardware": True}
        assert edge["env_configs"] == [
            {"node_ranks": "1,3", "env_vars": [{"A": "32"}, {"B": "on"}]},
            {"node_ranks": "2", "python_interpreter_path": "/opt/venv/bin/python"},
        ]
        raw["edges"][1]["enabled"] = False
        assert block(raw)["node_groups"][1]["env_configs"] == [
            {"node_ranks": "1-2", "env_vars": [{"A": "32"}, {"B": "on"}]}
        ]

    def test_robots_have_the_ranks_of_their_hosts_and_of_their_controllers(self) -> None:
        raw = guide_with_edges(2)
        raw["edges"][0]["hardware"] = [
            {"type": "Franka", "robot_ip": "192.0.2.2", "camera_serials": ["0123"], "controller_host": "edge-2"}
        ]
        raw["edges"][1]["hardware"] = [{"type": "Franka", "disable_validate": True}, {"type": "Franka"}]
        assert block(raw)["node_groups"][1]["hardware"] == {
            "type": "Franka",
            "configs": [
                {"node_rank": 1, "robot_ip": "192.0.2.2", "camera_serials": ["0123"], "controller_node_rank": 2},
                {"node_rank": 2, "disable_validate": True},
                {"node_rank": 2},
            ],
        }

    def test_a_robot_is_in_its_group_alone(self) -> None:
        raw = guide()
        raw["edges"][0] |= {"group": ["edge", "arm"], "hardware": [{"type": "Turtle2", "group": "arm"}]}
        groups = {group["label"]: group for group in block(raw)["node_groups"]}
        assert "hardware" not in groups["edge"]
        assert groups["arm"]["hardware"] == {"type": "Turtle2", "configs": [{"node_rank": 1}]}

    @pytest.mark.parametrize("label", ["4090", "on", "no", "1_000", "0x10", "1e3", "null", "y", "2026-11-30", "1.5"])
    def test_a_label_is_read_back_as_the_text_it_is(self, label: str) -> None:
        raw = guide()
        raw["cloud"][0]["group"] = label
        raw["rlinf"]["component_placement"]["actor"]["node_group"] = label
        rendered = block(raw)
        assert rendered["node_groups"][0]["label"] == label
        assert rendered["component_placement"]["actor"]["node_group"] == label

    @pytest.mark.parametrize("value", ["yes", "1:30", "", " a: b # c", '"', "\\", "0644", "é", "- a", "{", "~"])
    def test_a_value_of_a_variable_is_read_back_as_the_text_it_is(self, value: str) -> None:
        raw = guide()
        raw["rlinf"]["node_groups"] = {"edge": {"env_configs": [{"env_vars": {"A": value}}]}}
        assert block(raw)["node_groups"][1]["env_configs"][0]["env_vars"] == [{"A": value}]

    def test_further_keys_are_passed_on(self) -> None:
        raw = guide()
        options = {
            "auto_scheduler": True,
            "tracer": {"enable": False, "output_file": None, "note": "on", "n": [1, 0.5]},
        }
        raw["rlinf"]["options"] = options
        rendered = block(raw)
        assert {key: rendered[key] for key in options} == options

    def test_the_order_of_settings_changes_nothing(self) -> None:
        raw = guide()
        reordered = {key: raw[key] for key in sorted(raw, reverse=True)}
        reordered["edges"] = [dict(reversed(edge.items())) for edge in raw["edges"]]
        assert render_config(parse(reordered)) == render_config(parse(raw))


class TestABaseConfig:
    """The whole file with its `cluster:` replaced; every other byte is as it was."""

    def rendered(self, text: str, **options: object) -> str:
        raw = guide()
        raw["rlinf"]["options"] = options
        return render_config(parse(raw), split(text))

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_every_byte_before_and_after_the_block_is_as_it_was(self, newline: str) -> None:
        text = BASE.replace("\n", newline)
        rendered = self.rendered(text)
        before, after = text[: text.index("cluster:   #")], text[text.index(f"{newline}# The runner.") :]
        assert rendered.startswith(before)
        assert rendered.endswith(after)
        block = rendered[len(before) : len(rendered) - len(after)]
        assert block.startswith(f"cluster:{newline}  num_nodes: 2{newline}  node_groups:{newline}")
        assert block.count("\n") == block.count(newline)
        assert "0-7" not in block

    def test_it_says_the_same_but_for_the_block(self) -> None:
        old, new = yaml.safe_load(BASE), yaml.safe_load(self.rendered(BASE))
        old_block, new_block = old.pop("cluster"), new.pop("cluster")
        assert new == old
        assert new_block["node_groups"] == [
            {"label": "cloud", "node_ranks": "0"},
            {"label": "edge", "node_ranks": "1"},
        ]
        assert list(new_block["component_placement"]) == ["actor", "rollout", "env"]
        for key in ("auto_scheduler", "net_emulation"):
            assert new_block[key] == old_block[key]

    def test_the_settings_win_over_what_the_block_held(self) -> None:
        cluster = yaml.safe_load(self.rendered(BASE, auto_scheduler=False))["cluster"]
        assert cluster["auto_scheduler"] is False
        assert cluster["net_emulation"]["enabled"] is True

    def test_comments_of_what_is_kept_are_kept(self) -> None:
        assert "      # slow line\n" in self.rendered(BASE)

    @pytest.mark.parametrize(
        "text",
        [
            "a: 1\ncluster: {num_nodes: 1,\n  component_placement: {actor: all}}\n# c\nb: 2\n",
            "a: 1\n'cluster':\nb: 2\n",
            "a: 1\ncluster: null\nb: 2\n",
            "---\na: 1\ncluster:\n\n  num_nodes: 1\n\n\nb: 2\n",
            "cluster:\n  component_placement:\n    actor: >-\n      0-7\n\nb: 2\n",
            "b: 2\ncluster:\n  num_nodes: 1",
            "b: 2",
        ],
    )
    def test_a_block_of_any_form_is_replaced(self, text: str) -> None:
        old, new = yaml.safe_load(text), yaml.safe_load(self.rendered(text))
        assert new.pop("cluster")["num_nodes"] == 2
        old.pop("cluster", None)
        assert new == old

    @pytest.mark.parametrize(
        ("text", "rule"),
        [
            ("", "must be a YAML mapping"),
            ("- a\n", "must be a YAML mapping"),
            ("{cluster: {}}\n", "must be a YAML mapping"),
            ("a: [1\nb: canary\n", "must be one YAML document; line "),
            ("a: 1\n---\nb: canary\n", "must be one YAML document; line "),
            ("cluster: {}\na: 1\ncluster: {}\n", "must have one `cluster:`"),
            ("cluster: {num_nodes: &n 1}\na: *n\n", "shares a YAML anchor"),
            ("a: &n 1\ncluster:\n  num_nodes: *n\nb: *n\n", "shares a YAML anchor"),
            ("cluster: {auto_scheduler: true}\n", "one `key:` a line"),
        ],
    )
    def test_a_file_that_can_not_be_cut_is_refused_without_repeating_it(self, text: str, rule: str) -> None:
        with pytest.raises(FileError) as caught:
            split(text)
        assert rule in caught.value.rule
        assert "canary" not in f"{caught.value.rule} {caught.value.fix}"

    @pytest.mark.parametrize(
        ("rlinf", "name"),
        [
            ({}, "cluster"),
            ({"base_config": "rlinf/libero_spatial.ppo.yaml"}, "libero_spatial.ppo"),
            ({"base_config": "rlinf/a.yaml", "config_name": "b"}, "b"),
        ],
    )
    def test_it_is_called_as_the_base_config_is(self, rlinf: dict[str, str], name: str) -> None:
        raw = guide()
        raw["rlinf"] |= rlinf
        assert config_name(parse(raw)) == name
