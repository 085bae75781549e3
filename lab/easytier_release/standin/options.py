"""The options of `easytier-core`: one table for flags, their environment variables and where each goes.

Parsing only: what the values mean is `settings.py`. As upstream: a flag beats its variable, lists are
separated by commas or spaces, faults of usage exit with 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

Kind = Literal["text", "number", "truth", "optional truth", "switch", "list"]
"""`truth` needs a value; `optional truth` means true without one; `switch` takes none."""


@dataclass(frozen=True)
class Option:
    """One network option.

    Attributes:
        name: as in the long flag, without dashes; ET_ and its capitals make the environment variable.
        kind: how its value is written.
        help: one line.
        short: a one-letter flag, if it has one.
        flag: the key of the configuration's `[flags]` it sets, where it does just that.
        environment: false where upstream reads no variable.
    """

    name: str
    kind: Kind
    help: str
    short: str | None = None
    flag: str | None = None
    environment: bool = True

    @property
    def dest(self) -> str:
        """The key in `Options.network`."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"ET_{self.dest.upper()}"


def _flag(name: str, kind: Kind, text: str, short: str | None = None) -> Option:
    return Option(name, kind, text, short, flag=name.replace("-", "_"))


NETWORK_OPTIONS: tuple[Option, ...] = (
    Option("network-name", "text", "name of the network"),
    Option("network-secret", "text", "secret that members of the network share; better in ET_NETWORK_SECRET"),
    Option("ipv4", "text", "address of this node in the network; without one, no TUN device", "i"),
    Option("ipv6", "text", "IPv6 address of this node in the network"),
    Option("dhcp", "optional truth", "let EasyTier choose the address", "d"),
    Option("peers", "list", "peers to connect to, such as tcp://203.0.113.5:11010", "p"),
    Option("listeners", "list", "listeners: a port, an address, proto:port or a URL", "l"),
    Option("mapped-listeners", "list", "addresses under which others reach the listeners"),
    Option("no-listener", "switch", "open no listener"),
    Option("hostname", "text", "name of this node, cut to 32 characters"),
    Option("instance-name", "text", "name of this instance", "m"),
    Option("exit-nodes", "list", "nodes to send other traffic through"),
    Option("manual-routes", "list", "routes to use instead of the ones announced"),
    Option("relay-network-whitelist", "list", "networks to relay for"),
    Option("tcp-whitelist", "list", "TCP ports open to the network", environment=False),
    Option("udp-whitelist", "list", "UDP ports open to the network", environment=False),
    Option("stun-servers", "list", "STUN servers"),
    Option("stun-servers-v6", "list", "STUN servers for IPv6"),
    Option("disable-encryption", "optional truth", "no encryption; must be the same on all nodes", "u"),
    Option("disable-ipv6", "optional truth", "no IPv6"),
    _flag("default-protocol", "text", "protocol to connect to peers with"),
    _flag("encryption-algorithm", "text", "xor, aes-gcm, aes-256-gcm or chacha20"),
    _flag("multi-thread", "optional truth", "several threads"),
    _flag("multi-thread-count", "number", "how many threads"),
    _flag("dev-name", "text", "name of the TUN device, at most 15 bytes"),
    _flag("mtu", "number", "MTU; the device has 20 less when encrypted"),
    _flag("latency-first", "optional truth", "prefer the path of least latency"),
    _flag("enable-exit-node", "optional truth", "be an exit node"),
    _flag("proxy-forward-by-system", "optional truth", "forward by the kernel"),
    _flag("no-tun", "optional truth", "no TUN device"),
    _flag("use-smoltcp", "optional truth", "TCP stack in user space"),
    _flag("p2p-only", "optional truth", "talk only to peers directly connected"),
    _flag("lazy-p2p", "optional truth", "connect to peers directly only when there is traffic"),
    _flag("disable-p2p", "optional truth", "talk to peers only through the ones listed"),
    _flag("need-p2p", "optional truth", "ask others for direct connections"),
    _flag("disable-udp-hole-punching", "optional truth", "no UDP hole punching"),
    _flag("disable-tcp-hole-punching", "optional truth", "no TCP hole punching"),
    _flag("disable-sym-hole-punching", "optional truth", "no hole punching through symmetric NAT"),
    _flag("disable-upnp", "optional truth", "no UPnP"),
    _flag("enable-udp-broadcast-relay", "optional truth", "relay UDP broadcasts"),
    _flag("relay-all-peer-rpc", "optional truth", "relay RPC of every peer"),
    _flag("bind-device", "truth", "bind connections to the physical device"),
    _flag("enable-kcp-proxy", "optional truth", "TCP over KCP"),
    _flag("disable-kcp-input", "optional truth", "no TCP over KCP from others"),
    _flag("enable-quic-proxy", "optional truth", "TCP over QUIC"),
    _flag("disable-quic-input", "optional truth", "no TCP over QUIC from others"),
    _flag("disable-relay-kcp", "optional truth", "don't relay KCP"),
    _flag("disable-relay-quic", "optional truth", "don't relay QUIC"),
    _flag("enable-relay-foreign-network-kcp", "optional truth", "relay KCP of other networks"),
    _flag("enable-relay-foreign-network-quic", "optional truth", "relay QUIC of other networks"),
    _flag("accept-dns", "truth", "magic DNS"),
    _flag("tld-dns-zone", "text", "zone of the magic DNS"),
    _flag("private-mode", "truth", "refuse nodes of other networks"),
    _flag("foreign-relay-bps-limit", "number", "bytes a second relayed for other networks"),
    _flag("instance-recv-bps-limit", "number", "bytes a second received"),
)
"""What upstream calls its network options: if any is given, all are merged over the configuration file."""

REFUSED_OPTIONS: tuple[str, ...] = (
    "config-server",
    "machine-id",
    "config-dir",
    "external-node",
    "proxy-networks",
    "vpn-portal",
    "socks5",
    "compression",
    "port-forward",
    "secure-mode",
    "local-private-key",
    "local-public-key",
    "credential",
    "credential-file",
    "ipv6-public-addr-provider",
    "ipv6-public-addr-auto",
    "ipv6-public-addr-prefix",
    "file-log-level",
    "file-log-dir",
    "file-log-size",
    "file-log-count",
)
"""Upstream's options that this stand-in does not carry; their variables are refused too."""

LOG_LEVELS = ("off", "error", "warn", "info", "debug", "trace")


@dataclass(frozen=True)
class Options:
    """What the command line and the environment say.

    Attributes:
        config_file: path of the configuration, `-` for standard input, none for none.
        disable_env_parsing: leave `$NAME` in the configuration file alone.
        check_config: only read the configuration.
        rpc_portal: as given; none for upstream's default.
        rpc_portal_whitelist: networks whose clients the portal serves; none for loopback.
        console_log_level: one of `LOG_LEVELS`.
        network: the network options that were given, by `Option.dest`.
    """

    config_file: str | None
    disable_env_parsing: bool
    check_config: bool
    rpc_portal: str | None
    rpc_portal_whitelist: list[str] | None
    console_log_level: str
    network: dict[str, object] = field(default_factory=dict[str, object])


class _Parser(argparse.ArgumentParser):
    """argparse, with faults in clap's form: reason first, then how to get help; exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\n\nFor more information, try '--help'.\n")


def parse(arguments: Sequence[str], environment: Mapping[str, str], version: Version) -> Options:
    """Reads the command line and the ET_* variables.

    Args:
        arguments: without the program's name.
        environment: variables; those that are not of EasyTier are not looked at.
        version: what `--version` prints.

    Raises:
        SystemExit: 0 after --help and --version, 2 after a fault of usage.
    """
    parser = _parser(version)
    for name in REFUSED_OPTIONS:
        if (variable := f"ET_{name.replace('-', '_').upper()}") in environment:
            parser.error(f"{variable} is set, and this stand-in for easytier-core does not carry --{name}")
    given: dict[str, object] = vars(parser.parse_args(list(arguments)))
    network: dict[str, object] = {}
    for option in NETWORK_OPTIONS:
        value = given.pop(option.dest, None)
        if value is None and option.environment and (written := environment.get(option.variable)) is not None:
            value = _from_environment(parser, option, written)
        if isinstance(value, list):
            value = _split([str(item) for item in value])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - argparse is untyped
        if value is not None:
            network[option.dest] = value
    files = _texts(given, environment, "config_file") or []
    if len(files) > 1:
        parser.error("this stand-in for easytier-core takes one configuration file")
    level = str(given["console_log_level"] or environment.get("ET_CONSOLE_LOG_LEVEL") or "info").lower()
    if level not in LOG_LEVELS:
        parser.error(f"invalid value '{level}' for '--console-log-level': one of {', '.join(LOG_LEVELS)}")
    portal = given["rpc_portal"]
    return Options(
        config_file=files[0] if files else None,
        disable_env_parsing=bool(given["disable_env_parsing"]),
        check_config=bool(given["check_config"]),
        rpc_portal=str(portal) if portal is not None else environment.get("ET_RPC_PORTAL"),
        rpc_portal_whitelist=_texts(given, environment, "rpc_portal_whitelist"),
        console_log_level=level,
        network=network,
    )


def _texts(given: Mapping[str, object], environment: Mapping[str, str], dest: str) -> list[str] | None:
    value = given[dest]
    if value is None:
        written = environment.get(f"ET_{dest.upper()}")
        return None if written is None else _split([written])
    return _split([str(item) for item in value])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportGeneralTypeIssues] - argparse is untyped


def _split(values: Sequence[str]) -> list[str]:
    return [part for value in values for part in value.split(",")]


def _truth(text: str) -> bool:
    if text not in {"true", "false"}:
        raise argparse.ArgumentTypeError(f"invalid value '{text}': true or false")
    return text == "true"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"invalid value '{text}': a whole number, not negative")
    return int(text)


def _from_environment(parser: argparse.ArgumentParser, option: Option, written: str) -> object:
    try:
        written.encode()
    except UnicodeEncodeError:
        parser.error(f"{option.variable} is not UTF-8")
    try:
        match option.kind:
            case "text":
                return written
            case "list":
                return [written]
            case "number":
                return _number(written)
            case "switch":
                return True if _truth(written) else None
            case "truth" | "optional truth":
                return _truth(written)
    except argparse.ArgumentTypeError as error:
        parser.error(f"{option.variable}: {error}")


@dataclass(frozen=True)
class Version:
    """What `--version` prints: the program, EasyTier's version, and that this is a stand-in."""

    program: str
    easytier: str

    def __str__(self) -> str:
        return f"{self.program} {self.easytier}-pyo3"


def _parser(version: Version) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="easytier-core",
        description="EasyTier over the core of PyPI's easytier-pyo3: a stand-in for upstream's executable.",
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="show this help and exit")
    parser.add_argument("-V", "--version", action="version", version=str(version))
    parser.add_argument("-c", "--config-file", nargs="+", action="extend", metavar="FILE", help="configuration, TOML")
    parser.add_argument("--check-config", action="store_true", help="only check the configuration file")
    parser.add_argument(
        "--disable-env-parsing", action="store_true", help="leave $NAME in the configuration file alone"
    )
    parser.add_argument(
        "-r", "--rpc-portal", metavar="ADDRESS", help="where easytier-cli asks, such as 127.0.0.1:15888"
    )
    parser.add_argument(
        "--rpc-portal-whitelist", nargs=1, action="extend", metavar="CIDR", help="whom the portal serves"
    )
    parser.add_argument("--console-log-level", metavar="LEVEL", help=", ".join(LOG_LEVELS))
    for option in NETWORK_OPTIONS:
        _add(parser, option)
    return parser


def _add(parser: argparse.ArgumentParser, option: Option) -> None:
    names = [f"--{option.name}"] if option.short is None else [f"-{option.short}", f"--{option.name}"]
    text = option.help + (f" [{option.variable}]" if option.environment else "")
    match option.kind:
        case "text":
            parser.add_argument(*names, metavar="TEXT", help=text)
        case "number":
            parser.add_argument(*names, type=_number, metavar="N", help=text)
        case "truth":
            parser.add_argument(*names, type=_truth, metavar="BOOL", help=text)
        case "optional truth":
            parser.add_argument(*names, type=_truth, nargs="?", const=True, metavar="BOOL", help=text)
        case "switch":
            parser.add_argument(*names, action="store_const", const=True, help=text)
        case "list":
            parser.add_argument(*names, nargs="*", action="extend", metavar="TEXT", help=text)
