"""Options and configuration file become what upstream makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.easytier_release.standin import EASYTIER_VERSION, settings
from lab.easytier_release.standin.listeners import parse_listeners
from lab.easytier_release.standin.log import Log
from lab.easytier_release.standin.options import Version, parse
from lab.easytier_release.standin.settings import Configuration, ConfigurationError, expand, merge

ANY = "0.0.0.0"  # noqa: S104 - as it stands in URLs; nothing is opened here


def every_protocol(host: str, port: int) -> list[str]:
    offsets = {"tcp": 0, "udp": 0, "wg": 1, "quic": 2, "ws": 1, "wss": 2, "faketcp": 3}
    return [f"{scheme}://{host}:{port + offset if port else 0}" for scheme, offset in offsets.items()]


DEFAULT_SET = every_protocol(ANY, 11010)


def read(tmp_path: Path, text: str | None, *arguments: str, **environment: str) -> Configuration:
    file = tmp_path / "easytier.toml"
    if text is not None:
        file.write_text(text, "utf-8")
        arguments = ("-c", str(file), *arguments)
    version = Version("easytier-core", EASYTIER_VERSION)
    return settings.configuration(parse(arguments, environment, version), environment)


def flags(config: Configuration) -> object:
    return config["flags"]


@pytest.mark.parametrize(
    ("written", "urls"),
    [
        ("11010", DEFAULT_SET),
        ("1.1.1.1", every_protocol("1.1.1.1", 11010)),
        ("1.1.1.1:50000", every_protocol("1.1.1.1", 50000)),
        ("[::1]", every_protocol("[::1]", 11010)),
        ("[::1]:50000", every_protocol("[::1]", 50000)),
        ("0", every_protocol(ANY, 0)),
        ("wg", ["wg://0.0.0.0:11011"]),
        ("tcp:50000", ["tcp://0.0.0.0:50000"]),
        ("udp://1.1.1.1:50000", ["udp://1.1.1.1:50000"]),
    ],
)
def test_a_listener_may_be_a_port_an_address_a_protocol_or_a_url(written: str, urls: list[str]) -> None:
    assert parse_listeners([written]) == urls


@pytest.mark.parametrize("written", ["70000", "http://1.1.1.1:80", "tcp:x", "tcp://", "[1.1.1.1]:5", "::1:x", ""])
def test_a_listener_that_is_none_of_these_is_named(written: str) -> None:
    with pytest.raises(ValueError, match=rf"^invalid listener: {re.escape(written)}$"):
        parse_listeners([written])


def test_a_file_alone_is_taken_as_it_is(tmp_path: Path) -> None:
    config = read(tmp_path, 'hostname = "h"\nipv4 = "10.0.0.1"\n[network_identity]\nnetwork_name = "n"\n')
    assert config["listeners"] == []
    assert config["network_identity"] == {"network_name": "n", "network_secret": ""}


def test_any_network_option_without_the_key_listeners_opens_the_default_set(tmp_path: Path) -> None:
    assert read(tmp_path, 'hostname = "h"', ET_NETWORK_SECRET="s")["listeners"] == DEFAULT_SET
    assert read(tmp_path, "listeners = []", ET_NETWORK_SECRET="s")["listeners"] == []
    assert read(tmp_path, 'listeners = ["tcp://0.0.0.0:1"]', ET_NETWORK_SECRET="s")["listeners"] == ["tcp://0.0.0.0:1"]


def test_options_of_portal_and_log_do_not_open_listeners(tmp_path: Path) -> None:
    assert read(tmp_path, 'hostname = "h"', "-r", "15888", ET_CONSOLE_LOG_LEVEL="warn")["listeners"] == []


def test_no_listener_and_listeners_given_replace_those_of_the_file(tmp_path: Path) -> None:
    text = 'listeners = ["tcp://0.0.0.0:1"]'
    assert read(tmp_path, text, "--no-listener")["listeners"] == []
    assert read(tmp_path, text, "-l", "udp:2")["listeners"] == ["udp://0.0.0.0:2"]


def test_peers_given_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    text = '[[peer]]\nuri = "tcp://a:1"\n'
    assert read(tmp_path, text, "-p", "tcp://b:1")["peer"] == [{"uri": "tcp://a:1"}, {"uri": "tcp://b:1"}]


def test_flags_given_are_put_over_those_of_the_file(tmp_path: Path) -> None:
    text = '[flags]\ndev_name = "et0"\nmtu = 1300\n'
    config = read(tmp_path, text, "--mtu", "1200", "-u", "--private-mode", "true", "--disable-ipv6", "false")
    assert flags(config) == {
        "dev_name": "et0",
        "mtu": 1200,
        "enable_encryption": False,
        "private_mode": True,
        "enable_ipv6": True,
    }


def test_unknown_keys_are_accepted_and_unknown_flags_have_no_effect(tmp_path: Path) -> None:
    assert flags(read(tmp_path, "no_such_key = 1\n[flags]\nno_such_flag = 1\n")) == {}


def test_merging_changes_nothing_that_was_read() -> None:
    config: Configuration = {"peer": [{"uri": "tcp://a:1"}], "flags": {"mtu": 1}}
    merge(config, {"peers": ["tcp://b:1"], "mtu": 2, "hostname": "h"})
    assert config == {"peer": [{"uri": "tcp://a:1"}], "flags": {"mtu": 1}}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--ipv4", "10.0.0.300"], "10.0.0.300"),
        (["-p", "10.0.0.1"], "10.0.0.1"),
        (["-l", "nonsense"], "nonsense"),
    ],
)
def test_a_bad_value_of_an_option_is_named(tmp_path: Path, arguments: list[str], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        read(tmp_path, None, *arguments)


@pytest.mark.parametrize("text", ["hostname = ", "flags = 1", "listeners = 'all'", "[secure_mode]\nenabled = true"])
def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$NAME-${NAME}", "v-v"),
        ("${UNSET:-d} ${NAME:-d}", "d v"),
        ("$$NAME", "$NAME"),
        ("5$ and $5", "5$ and $5"),
        ("$NAME and $UNSET", "$NAME and $UNSET"),
    ],
)
def test_names_are_expanded_as_in_a_shell_or_not_at_all(text: str, expanded: str) -> None:
    assert expand(text, {"NAME": "v"}) == expanded


def test_expansion_is_off_when_told_so(tmp_path: Path) -> None:
    assert read(tmp_path, 'hostname = "$WHO"', WHO="x")["hostname"] == "x"
    assert read(tmp_path, 'hostname = "$WHO"', "--disable-env-parsing", WHO="x")["hostname"] == "$WHO"


def test_the_log_never_writes_the_secret_nor_its_quoted_form(capfd: pytest.CaptureFixture[str]) -> None:
    log = Log("trace")
    log.hide('se"cret')
    log("error", 'plain se"cret')
    log("info", 'quoted "se\\"cret"')
    written = capfd.readouterr()
    assert "cret" not in written.out + written.err


def test_the_log_writes_warnings_to_standard_error_and_the_rest_to_standard_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = Log("info")
    for level in ("error", "warn", "info", "debug"):
        log(level, f"<{level}>")
    written = capfd.readouterr()
    assert re.findall(r"<(\w+)>", written.err) == ["error", "warn"]
    assert re.findall(r"<(\w+)>", written.out) == ["info"]
