"""From options and a configuration file to what the core is given. Pure but for reading the file.

Sources: `merge_into` in upstream's `easytier/src/core.rs` and `easytier/src/common/config.rs`, v2.6.4.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast
from unicodedata import category
from urllib.parse import urlsplit

from .listeners import DEFAULT_PORT, parse_listeners
from .options import NETWORK_OPTIONS, Options

FLAGS = frozenset(
    {option.flag for option in NETWORK_OPTIONS if option.flag}
    | {
        "enable_encryption",
        "enable_ipv6",
        "relay_network_whitelist",
        "data_compress_algo",
        "quic_listen_port",
    }
    | {"disable_relay_data", "socket_mark"}
)
"""Keys of `[flags]` that the core knows. Upstream drops others without a word; the core would refuse them."""

UNSUPPORTED_TABLES = ("secure_mode",)
"""Tables of a configuration file that change what a node is, and are not carried here."""

Configuration = dict[str, object]


class ConfigurationError(Exception):
    """The configuration can't be used; the text says where and why, and holds no secret."""


def configuration(options: Options, environment: Mapping[str, str]) -> Configuration:
    """Reads the configuration file, if one is named, and merges the network options over it.

    The rule of listeners is upstream's: as soon as any network option is given, flag or variable, a
    configuration without the key `listeners` gets the full default set; an empty list stays empty.

    Raises:
        ConfigurationError: the file can't be read, or a value can't be used.
    """
    config = _read(options, environment) if options.config_file is not None else {}
    if options.network or options.config_file is None:
        config = merge(config, options.network)
    return normalise(config)


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replaces `$NAME`, `${NAME}` and `${NAME:-default}`; `$$` stands for one dollar sign.

    As upstream: if any variable without a default is unset, the whole text stays as it is.
    """
    missing = False

    def replace(match: re.Match[str]) -> str:
        nonlocal missing
        if match[0] == "$$":
            return "$"
        name = match["plain"] or match["braced"]
        value: str | None = environment[name] if name in environment else match["default"]
        if value is None:
            missing = True
            return match[0]
        return value

    expanded = re.sub(
        r"\$\$|\$(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|\$\{(?P<braced>[^}:]+)(?::-(?P<default>[^}]*))?\}",
        replace,
        text,
    )
    return text if missing else expanded


def merge(config: Configuration, given: Mapping[str, object]) -> Configuration:
    """Puts network options over a configuration.

    Args:
        config: as read; it is not changed.
        given: `Options.network`.

    Raises:
        ConfigurationError: names the option whose value can't be used.
    """
    merged = dict(config)
    for dest in ("hostname", "instance_name", "dhcp"):
        if dest in given:
            merged[dest] = given[dest]
    identity = _table(merged, "network_identity")
    merged["network_identity"] = identity | {
        key: given[key] for key in ("network_name", "network_secret") if key in given
    }
    for dest, parse in (("ipv4", ipaddress.IPv4Interface), ("ipv6", ipaddress.IPv6Interface)):
        if dest in given:
            try:
                parse(str(given[dest]))
            except ValueError as error:
                raise ConfigurationError(f"failed to parse {dest} address: {given[dest]}: {error}") from error
            merged[dest] = given[dest]
    if peers := _texts(given, "peers"):
        for peer in peers:
            if not urlsplit(peer).scheme:
                raise ConfigurationError(f"failed to parse peer uri: {peer}: not a URL")
        merged["peer"] = [*_list(merged, "peer"), *({"uri": peer} for peer in peers)]
    merged |= _listeners(merged, given)
    for dest, key in (
        ("mapped_listeners", "mapped_listeners"),
        ("manual_routes", "routes"),
        ("exit_nodes", "exit_nodes"),
    ):
        if dest in given:
            merged[key] = _texts(given, dest)
    for dest in ("tcp_whitelist", "udp_whitelist", "stun_servers", "stun_servers_v6"):
        if dest in given:
            merged[dest] = [*_list(merged, dest), *(text for text in _texts(given, dest) if text.strip())]
    merged["flags"] = _table(merged, "flags") | _flags(given)
    return merged


def normalise(config: Configuration) -> Configuration:
    """Fills in what upstream's loader does around the core: identity, host name, keys the core would refuse.

    Raises:
        ConfigurationError: the configuration asks for something this stand-in does not carry.
    """
    for table in UNSUPPORTED_TABLES:
        if table in config:
            raise ConfigurationError(f"this stand-in for easytier-core does not carry [{table}]")
    identity = {"network_name": "default", "network_secret": ""} | _table(config, "network_identity")
    name = "".join(each for each in str(config.get("hostname") or "") if category(each) != "Cc")[:32]
    ready = config | {
        "network_identity": identity,
        "hostname": name or socket.gethostname(),
        "listeners": _list(config, "listeners"),
        "flags": {key: value for key, value in _table(config, "flags").items() if key in FLAGS},
    }
    if "instance_name" not in ready:
        ready["instance_name"] = "default"
    return ready


def secret(config: Configuration) -> str:
    """The network secret of a configuration, or the empty text."""
    return str(_table(config, "network_identity").get("network_secret", ""))


def _read(options: Options, environment: Mapping[str, str]) -> Configuration:
    source = str(options.config_file)
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"failed to read config file: {source}: {error}") from error
    if source != "-" and not options.disable_env_parsing:
        text = expand(text, environment)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"failed to load config file: {source}: {error}") from error


def _listeners(config: Configuration, given: Mapping[str, object]) -> Configuration:
    try:
        if given.get("no_listener"):
            return {"listeners": []}
        if written := _texts(given, "listeners"):
            return {"listeners": parse_listeners(written)}
        if "listeners" not in config:
            return {"listeners": parse_listeners([str(DEFAULT_PORT)])}
    except ValueError as error:
        raise ConfigurationError(f"failed to parse listeners: {error}") from error
    return {}


def _flags(given: Mapping[str, object]) -> Configuration:
    flags: Configuration = {
        option.flag: given[option.dest] for option in NETWORK_OPTIONS if option.flag and option.dest in given
    }
    for dest, flag in (("disable_encryption", "enable_encryption"), ("disable_ipv6", "enable_ipv6")):
        if dest in given:
            flags[flag] = not given[dest]
    if "relay_network_whitelist" in given:
        flags["relay_network_whitelist"] = " ".join(_texts(given, "relay_network_whitelist"))
    return flags


def _table(config: Mapping[str, object], key: str) -> Configuration:
    value = config.get(key, {})
    if not isinstance(value, dict):
        raise ConfigurationError(f"failed to load config file: {key} is not a table")
    return cast(Configuration, value)


def _list(config: Mapping[str, object], key: str) -> list[object]:
    value = config.get(key, [])
    if not isinstance(value, list):
        raise ConfigurationError(f"failed to load config file: {key} is not a list")
    return cast(list[object], value)


def _texts(given: Mapping[str, object], dest: str) -> list[str]:
    return [str(item) for item in cast(list[object], given.get(dest, []))]
