"""Files that the settings name: shared settings and a base config, relative to Pulumi.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from config.faults import Fault, SettingsError
from config.load import parse, read
from tests.example_settings import guide


def write(folder: Path, name: str, content: object) -> None:
    (folder / name).write_text(content if isinstance(content, str) else yaml.safe_dump(content))


def faults(raw: object, folder: Path) -> list[Fault]:
    with pytest.raises(SettingsError) as caught:
        read(raw, folder)
    return list(caught.value.faults)


class TestSharedSettings:
    """`extends`: objects are merged key by key, lists and all else are replaced."""

    def shared(self, folder: Path, **more: object) -> dict[str, Any]:
        """What is left for the stack when all but its hosts is shared."""
        raw = guide()
        hosts = {key: raw.pop(key) for key in ("bootstrap", "cloud", "edges")}
        write(folder, "shared.yaml", {"cluster": raw | more})
        return {"extends": "shared.yaml", **hosts}

    def test_a_stack_with_shared_settings_is_the_same_as_with_its_own(self, tmp_path: Path) -> None:
        cluster, _ = read(self.shared(tmp_path), tmp_path)
        assert cluster.model_copy(update={"extends": None}) == parse(guide())

    def test_the_stack_wins_key_by_key(self, tmp_path: Path) -> None:
        raw = self.shared(tmp_path, overlay={"network": "shared", "mtu": 1300})
        raw["overlay"] = {"mtu": 1200}
        cluster, _ = read(raw, tmp_path)
        assert cluster.overlay is not None
        assert (cluster.overlay.network, cluster.overlay.mtu) == ("shared", 1200)

    def test_lists_are_replaced(self, tmp_path: Path) -> None:
        raw = self.shared(tmp_path, edges=guide()["edges"])
        raw["edges"] = []
        raw["rlinf"] = {"component_placement": {name: {"node_group": "cloud"} for name in ("rollout", "env")}}
        assert read(raw, tmp_path)[0].edges == []

    def test_a_key_with_nothing_in_it_takes_the_shared_one_out(self, tmp_path: Path) -> None:
        raw = self.shared(tmp_path)
        raw["overlay"] = None
        assert "cluster.bootstrap" in [fault.key for fault in faults(raw, tmp_path)]

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            ("cluster: [", "must be one YAML document; line 1, column "),
            ("ssh: {user: canary}", "must have the one key `cluster`"),
            ("cluster: {}\nother: canary", "must have the one key `cluster`"),
            ("cluster: canary", "must have the one key `cluster`"),
            ("cluster: {extends: other.yaml}", "shared settings extend no others"),
        ],
    )
    def test_a_file_of_another_kind_is_refused(self, tmp_path: Path, content: str, rule: str) -> None:
        raw = self.shared(tmp_path)
        write(tmp_path, "shared.yaml", content)
        fault = faults(raw, tmp_path)[0]
        assert (fault.key, fault.value) == ("cluster.extends", "shared.yaml")
        assert rule in fault.rule
        assert "canary" not in str(fault)


def test_what_is_wrong_with_files_is_reported_with_the_rest(tmp_path: Path) -> None:
    raw = guide()
    raw["extends"] = "shared.yaml"
    raw["rlinf"]["base_config"] = "ppo.yaml"
    raw["edges"][0]["overlay_ip"] = "10.10.0.10"
    found = faults(raw, tmp_path)
    assert [fault.key for fault in found] == [
        "cluster.extends",
        "cluster.rlinf.base_config",
        "cluster.edges[0].overlay_ip",
    ]
    assert "No such file or directory" in found[0].rule


@pytest.mark.parametrize("raw", [None, 7, [], "text", {"extends": 3}, {"rlinf": []}, {"rlinf": {"base_config": []}}])
def test_settings_of_any_shape_are_refused_with_faults(raw: object, tmp_path: Path) -> None:
    assert faults(raw, tmp_path)
