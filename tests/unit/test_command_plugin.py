"""The pure parts of the substitute command plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import struct_pb2

from lab.command_plugin.plugin import globs, go_text
from lab.plugin_kit import diffs
from lab.plugin_kit.values import (
    ASSET_SIGNATURE,
    OUTPUT_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN_STRING,
    Asset,
    Marked,
    decode,
    encode,
    equal,
    mark,
    plain,
)


def wire(values: dict[str, Any]) -> struct_pb2.Struct:
    """Properties as the engine sends them."""
    message = struct_pb2.Struct()
    message.update(values)
    return message


@pytest.mark.parametrize(
    "value",
    [
        "text",
        1.5,
        True,
        {},
        [],
        [None, {"a": ["b"]}],
        UNKNOWN_STRING,
        {SIGNATURE: SECRET_SIGNATURE, "value": {"a": {SIGNATURE: SECRET_SIGNATURE, "value": "b"}}},
        {SIGNATURE: OUTPUT_SIGNATURE, "secret": True},
        {SIGNATURE: OUTPUT_SIGNATURE, "value": "v", "dependencies": ["urn:a", "urn:b"]},
        {SIGNATURE: ASSET_SIGNATURE, "text": "t", "hash": "h"},
    ],
)
def test_values_survive_the_way_there_and_back(value: object) -> None:
    message = wire({"x": value})
    assert encode(decode(message)) == message


def test_nulls_are_dropped_from_objects_at_every_depth() -> None:
    assert decode(wire({"a": None, "b": {"c": None, "d": 1}})) == {"b": {"d": 1.0}}


def test_a_secret_output_is_one_marked_value() -> None:
    nested = {SIGNATURE: SECRET_SIGNATURE, "value": {SIGNATURE: OUTPUT_SIGNATURE, "dependencies": ["urn:a"]}}
    (value,) = decode(wire({"x": nested})).values()
    assert value == Marked(None, secret=True, known=False, dependencies=("urn:a",))


def test_marks_add_up_and_plain_values_have_none() -> None:
    value = mark(mark({"a": mark("b", secret=True)}, secret=True), dependencies=["urn:a"])
    assert value.secret
    assert value.dependencies == ("urn:a",)
    assert plain(value) == {"a": "b"}


def test_equality_knows_secrets_types_and_hashes() -> None:
    assert not equal(mark("a", secret=True), "a")
    assert not equal(True, 1.0)  # noqa: FBT003  # the value itself
    assert equal(Asset({"path": "a", "hash": "h"}), Asset({"text": "b", "hash": "h"}))
    assert not equal({"a": None}, {})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("create",), "create"),
        (("environment", "HOME"), "environment.HOME"),
        (("environment", "a-b"), 'environment["a-b"]'),
        (("environment", 'a"b'), 'environment["a\\"b"]'),
        (("triggers", 0, "a"), "triggers[0].a"),
    ],
)
def test_paths_are_written_as_the_engine_writes_them(path: tuple[str | int, ...], text: str) -> None:
    assert diffs.path_text(path) == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain é", '"plain é"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("line\n\ttab\r", '"line\\n\\ttab\\r"'),
        ("\x01\x7f\u200b\U000e0001", '"\\x01\\x7f\\u200b\\U000e0001"'),
    ],
)
def test_commands_are_quoted_as_go_quotes(text: str, quoted: str) -> None:
    assert go_text.quoted(text) == quoted


def test_ipv6_addresses_stand_in_brackets() -> None:
    assert go_text.endpoint("192.0.2.1", 22) == "192.0.2.1:22"
    assert go_text.endpoint("2001:db8::1", 22) == "[2001:db8::1]:22"


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*", ["a"]),
        ("**", ["a", "d/b.txt", "d/e/[c]"]),
        ("d/*", ["d/b.txt"]),
        ("d/**", ["d/b.txt", "d/e/[c]"]),
        ("?", ["a"]),
        ("[a-c]", ["a"]),
        ("[!a]", []),
        ("{a,d/b.*}", ["a", "d/b.txt"]),
        (r"d/e/\[c\]", ["d/e/[c]"]),
        ("a+", []),
    ],
)
def test_globs(tmp_path: Path, glob: str, found: list[str]) -> None:
    for name in ("a", "d/b.txt", "d/e/[c]"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert globs.matching_files(tmp_path, [glob]) == found
