"""The lab's command line, without a lab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab import cli, disk
from lab.topology import Topology


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache in which there is no lab; and signals are left as they are."""
    monkeypatch.setenv("RLINF_CLOUD_EDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(cli, "handle_signals", lambda: None)
    return tmp_path


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        *([command, "--help"] for command in ("up", "down", "status", "env", "exec", "inventory", "fault")),
        *(
            ["fault", kind, "--help"]
            for kind in (
                "link-down", "link-up", "reboot", "kill-process", "fill-disk", "unfill-disk", "block-port",
                "unblock-port", "wrong-host-key", "right-host-key", "stop-host", "start-host",
            )
        ),
    ],
)  # fmt: skip
def test_every_command_explains_itself(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(argv)
    assert ended.value.code == 0
    assert "usage: script/lab" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["env"], ["inventory"]])
def test_without_a_lab_a_command_says_how_to_make_one(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*argv, "--name", "nowhere"]) == 1
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err == "error: no lab called nowhere is up; `script/lab up --name nowhere` makes one\n"


@pytest.mark.parametrize("argv", [["up"], ["down"], ["exec", "edge-1"], ["fault", "reboot", "edge-1"], ["status"]])
def test_who_is_not_root_is_told_so(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(argv) == 1
    assert "the lab needs root" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["up", "--edges", "many"], "--edges"),
        (["up", "--", "ls"], "only `exec` takes a command after `--`"),
        (["fault", "block-port", "edge-1", "0"], "0 is no port"),
        (["fault", "block-port", "edge-1", "65536"], "65536 is no port"),
        (["explode"], "explode"),
    ],
)
def test_wrong_usage_is_named(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(argv)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_bootstrap_has_a_route_to_each_edges_network_and_an_edge_its_router_only() -> None:
    lab = Topology("demo", clouds=1, edges=2)
    bootstrap = disk.network_file(lab, lab.host("bootstrap"))
    assert bootstrap.count("[Route]") == 2
    assert "Destination=192.168.2.0/24\nGateway=203.0.113.102\n" in bootstrap
    edge = disk.network_file(lab, lab.host("edge-2"))
    assert "Gateway=192.168.2.1\n" in edge
    assert "[Route]" not in edge
    assert "Gateway" not in disk.network_file(lab, lab.host("cloud-1"))


@pytest.mark.parametrize("text", ["edge-1", "edge-1=podman", "container"])
def test_a_kind_of_edge_that_is_none_is_refused_with_those_there_are(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["up", "--edge-kind", text])
    assert ended.value.code == 2
    assert (
        f"{text}: give EDGE=KIND, where KIND is one of systemd, container, container-no-cap" in capsys.readouterr().err
    )
