"""The stand-in's `easytier-core` reads its command line and environment as upstream does."""

from __future__ import annotations

import pytest

from lab.easytier_release.standin import EASYTIER_VERSION
from lab.easytier_release.standin.options import REFUSED_OPTIONS, Options, Version, parse

VERSION = Version("easytier-core", EASYTIER_VERSION)


def read(*arguments: str, **environment: str) -> Options:
    return parse(arguments, environment, VERSION)


def test_nothing_given_means_no_network_option_and_upstreams_log_level() -> None:
    assert read() == Options(None, False, False, None, None, "info")  # noqa: FBT003 - all defaults in one look


def test_rpc_portal_and_log_level_are_no_network_options() -> None:
    options = read(ET_RPC_PORTAL="127.0.0.1:15888", ET_CONSOLE_LOG_LEVEL="warn")
    assert options.network == {}
    assert options.rpc_portal == "127.0.0.1:15888"
    assert options.console_log_level == "warn"


def test_a_flag_beats_its_variable() -> None:
    assert read("--hostname", "flag", ET_HOSTNAME="variable", ET_IPV4="10.0.0.1").network == {
        "hostname": "flag",
        "ipv4": "10.0.0.1",
    }


def test_lists_are_separated_by_commas_and_by_spaces_and_may_be_repeated() -> None:
    assert read("-p", "tcp://a:1,tcp://b:1", "-p", "tcp://c:1", "tcp://d:1").network["peers"] == [
        "tcp://a:1",
        "tcp://b:1",
        "tcp://c:1",
        "tcp://d:1",
    ]
    assert read(ET_LISTENERS="tcp,udp").network["listeners"] == ["tcp", "udp"]


def test_a_secret_is_taken_as_it_is_whatever_it_holds() -> None:
    secret = "a,b $HOME \"'\\ =#"
    assert read(ET_NETWORK_SECRET=secret).network["network_secret"] == secret
    assert read(f"--network-secret={secret}").network["network_secret"] == secret


@pytest.mark.parametrize(
    ("arguments", "value"), [(["--latency-first"], True), (["--latency-first", "false"], False), ([], None)]
)
def test_an_optional_truth_is_true_without_a_value(arguments: list[str], value: bool | None) -> None:
    assert read(*arguments).network.get("latency_first") is value


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-flag"],
        ["--private-mode"],
        ["--private-mode", "yes"],
        ["--mtu", "wide"],
        ["--host", "no-abbreviations"],
        ["--console-log-level", "loud"],
        ["-c", "one.toml", "two.toml"],
    ],
)
def test_a_fault_of_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read(*arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("name", REFUSED_OPTIONS)
def test_what_is_not_carried_is_refused_and_never_ignored(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    variable = f"ET_{name.replace('-', '_').upper()}"
    for arguments, environment in (([f"--{name}", "x"], {}), ([], {variable: "x"})):
        with pytest.raises(SystemExit) as ended:
            parse(arguments, environment, VERSION)
        assert ended.value.code == 2
        assert name in capsys.readouterr().err.replace("_", "-").lower()


def test_a_bad_variable_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(ET_PRIVATE_MODE="on")
    assert "ET_PRIVATE_MODE" in capsys.readouterr().err


def test_the_version_has_upstreams_form_and_says_that_it_is_a_stand_in(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == "easytier-core 2.6.4-81487c36-pyo3\n"
