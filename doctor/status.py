"""What is: the lines that `status.sh` prints on a host. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Path:
    """How a host reaches another one in the overlay."""

    relays: int
    """Hosts in between; 0 where the two are connected directly."""
    latency_ms: float | None
    protocol: str
    """`tcp`, `udp`; empty through relays."""

    def __str__(self) -> str:
        way = f"direct {self.protocol}".rstrip() if self.relays == 0 else f"relayed by {self.relays}"
        return way if self.latency_ms is None else f"{way} {self.latency_ms:.1f} ms"


@dataclass(frozen=True)
class Status:
    """What runs on a host. What its script did not tell is None, or empty."""

    installed: bool
    """Whether anything of ours is there that could tell."""
    services: str = ""
    """systemd or supervised."""
    addresses: frozenset[tuple[str, str]] = frozenset()
    """Device and IPv4 address."""
    changed: tuple[str, ...] = ()
    """Files that are not what `pulumi up` wrote."""
    easytier: str | None = None
    """State of the service; None where there is none."""
    easytier_boot: str = ""
    echo: str | None = None
    easytier_version: str | None = None
    paths: Mapping[str, Path] | None = None
    """Overlay address to the way there; None where EasyTier did not answer."""
    ray: str | None = None
    """State of the service; None where there is none."""
    ray_boot: str = ""
    ray_runs: bool = False
    """Whether it is Ray that runs, and not the wait for its address and its head."""
    ports_closed: bool | None = None
    rank: str | None = None
    ray_device: str | None = None
    ray_ip: str | None = None
    ray_version: str | None = None
    python_version: str | None = None
    nodes: frozenset[str] | None = None
    """On the head: addresses of the nodes that Ray holds for alive; None elsewhere, and where it did not answer."""


def read_status(text: str) -> Status:
    """Reads what `status.sh` has printed; lines that are not known are of a later version, and passed over."""
    told = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if "SERVICES" not in told:
        return Status(installed=False)
    version, paths = _peers(told.get("PEERS", ""))
    ports = told.get("PORTS")
    return Status(
        installed=True,
        services=told["SERVICES"],
        addresses=frozenset(_address(pair) for pair in told.get("ADDRESSES", "").split()),
        changed=tuple(told.get("CHANGED", "").split()),
        easytier=told.get("EASYTIER_STATE"),
        easytier_boot=told.get("EASYTIER_BOOT", ""),
        echo=told.get("ECHO_STATE"),
        easytier_version=version,
        paths=paths,
        ray=told.get("RAY_STATE"),
        ray_boot=told.get("RAY_BOOT", ""),
        ray_runs="RANK" in told,
        ports_closed=None if ports is None else ports == "closed",
        rank=told.get("RANK"),
        ray_device=told.get("RAY_DEVICE"),
        ray_ip=told.get("RAY_IP"),
        ray_version=told.get("RAY_VERSION"),
        python_version=told.get("PYTHON_VERSION"),
        nodes=frozenset(told["RAY_NODES"].split(",")) if told.get("RAY_NODES") else None,
    )


def _address(pair: str) -> tuple[str, str]:
    device, _, address = pair.partition("=")
    return device.partition("@")[0], address.partition("/")[0]


def _peers(text: str) -> tuple[str | None, dict[str, Path] | None]:
    """EasyTier's own version, and the way to each other host, from `easytier-cli -o json peer`."""
    try:
        rows = json.loads(text)
    except json.JSONDecodeError:
        return None, None
    if not isinstance(rows, list):
        return None, None
    version = None
    paths: dict[str, Path] = {}
    for row in cast("list[dict[str, Any]]", rows):
        cost = str(row.get("cost", ""))
        if cost == "Local":
            # The part after the hyphen is the commit.
            version = str(row.get("version", "")).partition("-")[0] or None
        elif row.get("ipv4"):
            relays = 0 if cost == "p2p" else _number(cost.removeprefix("relay(").removesuffix(")")) or 1
            protocol = "" if relays else str(row.get("tunnel_proto", "")).strip("-")
            paths[str(row["ipv4"])] = Path(int(relays), _number(str(row.get("lat_ms", ""))), protocol)
    return version, paths


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
