"""The pure parts of the substitute aws plugin: checks, defaults, diffs, previews, what a refresh finds."""

from __future__ import annotations

import pytest

from lab.aws_plugin.plugin import shapes
from lab.aws_plugin.plugin.config import config_of
from lab.aws_plugin.plugin.instance import Instance
from lab.plugin_kit.values import Marked, Properties, mark

SHAPE = Instance.shape


def test_a_value_that_is_not_known_yet_is_taken_to_become_right() -> None:
    assert shapes.failures({"ami": mark("", known=False)}, SHAPE, "x") == []


def test_a_fault_deep_inside_names_its_path() -> None:
    inputs: Properties = {"rootBlockDevice": {"volumeSize": "big"}}
    [(path, reason)] = shapes.failures(inputs, SHAPE, "x")
    assert path == "rootBlockDevice.volumeSize"
    assert "'x.rootBlockDevice.volumeSize'" in reason


def test_an_unknown_value_of_a_replacing_property_replaces() -> None:
    old: Properties = {"ami": "ami-1", "__defaults": []}
    answer = shapes.diff(old, {"ami": mark("", known=False), "__defaults": []}, SHAPE, {})
    assert list(answer.replaces) == ["ami"]


def test_ignored_changes_are_ignored() -> None:
    answer = shapes.diff({"ami": "ami-1"}, {"ami": "ami-2"}, SHAPE, {"ami": None})
    assert not answer.diffs


def test_an_update_that_stops_an_instance_makes_its_public_address_unknown() -> None:
    old: Properties = {"instanceType": "a", "publicIp": "203.0.113.60", "arn": "arn"}
    state = shapes.previewed({"instanceType": "b"}, SHAPE, old)
    assert state["publicIp"] == Marked("", known=False)
    assert state["arn"] == "arn"
    assert shapes.previewed({"instanceType": "a"}, SHAPE, old)["publicIp"] == "203.0.113.60"


def test_a_secret_tag_is_secret_in_all_tags_too() -> None:
    state = shapes.with_secrets({"tags": {"a": "b"}, "tagsAll": {"a": "b"}}, {"tags": mark({"a": "b"}, secret=True)})
    assert state == {"tags": mark({"a": "b"}, secret=True), "tagsAll": mark({"a": "b"}, secret=True)}


def test_a_refresh_keeps_to_what_the_program_said() -> None:
    inputs: Properties = {"monitoring": False, "rootBlockDevice": {"volumeSize": 8.0}}
    state: Properties = {"monitoring": True, "rootBlockDevice": {"volumeSize": 8.0, "iops": 3000.0}, "keyName": "k"}
    found = shapes.refreshed(inputs, state, SHAPE)
    assert found == {"monitoring": True, "rootBlockDevice": {"volumeSize": 8.0}, "__defaults": []}


def test_settings_win_over_the_environment_and_structured_ones_come_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert config_of({}).region == "eu-west-1"
    config = config_of(
        {
            "region": "us-east-1",
            "defaultTags": '{"tags": {"a": "b"}}',
            "endpoints": '[{"ec2": "http://ec2"}]',
            "skipCredentialsValidation": "true",
        }
    )
    assert (config.region, config.default_tags, config.skip_credentials_validation) == ("us-east-1", {"a": "b"}, True)
    assert config.endpoint("ec2") == "http://ec2"


def test_keys_are_not_in_what_is_printed_of_a_configuration() -> None:
    assert "hidden" not in repr(config_of({"region": "r", "accessKey": "hidden", "secretKey": "hidden"}))
