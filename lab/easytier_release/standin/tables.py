"""From the core's snapshots to what `easytier-cli` prints: upstream's keys, order and formats. Pure.

Sources: `handle_peer_list`, `handle_route_list` in upstream's `easytier/src/easytier-cli.rs` and
`easytier/src/proto/api.rs`, v2.6.4. The snapshots follow protobuf's JSON mapping: zeros are left out, and
64-bit numbers are strings.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import cast

Record = Mapping[str, object]
NAT_TYPES = (
    "Unknown",
    "OpenInternet",
    "NoPAT",
    "FullCone",
    "Restricted",
    "PortRestricted",
    "Symmetric",
    "SymUdpFirewall",
    "SymmetricEasyInc",
    "SymmetricEasyDec",
)
PUBLIC_SERVER_PREFIX = "PublicServer_"


def peer_table(node: Record, routes: Sequence[Record], peers: Sequence[Record]) -> list[dict[str, str]]:
    """What `easytier-cli peer` lists: this node first, then every other node of the network by address."""
    cidr = _text(node, "ipv4_addr")
    rows = [
        {
            "cidr": cidr,
            "ipv4": cidr.partition("/")[0],
            "hostname": _text(node, "hostname"),
            "cost": "Local",
            "lat_ms": "-",
            "loss_rate": "-",
            "rx_bytes": "-",
            "tx_bytes": "-",
            "tunnel_proto": "-",
            "nat_type": _nat_type(node),
            "id": str(_number(node, "peer_id")),
            "version": _text(node, "version"),
        }
    ]
    by_id = {_number(peer, "peer_id"): peer for peer in peers}
    rows += [_peer_row(route, by_id.get(_number(route, "peer_id"), {})) for route in routes]
    return sorted(rows, key=_order)


def route_table(node: Record, routes: Sequence[Record], peers: Sequence[Record]) -> list[dict[str, object]]:
    """What `easytier-cli route` lists: this node, then the next hop to every other node."""
    by_id = {_number(route, "peer_id"): route for route in routes}
    latencies = {_number(peer, "peer_id"): _latency_ms(peer) for peer in peers}
    rows: list[dict[str, object]] = [
        {
            "ipv4": _text(node, "ipv4_addr"),
            "hostname": _text(node, "hostname"),
            "proxy_cidrs": "",
            "next_hop_ipv4": "-",
            "next_hop_hostname": "Local",
            "next_hop_lat": 0.0,
            "path_len": 0,
            "path_latency": 0,
            "next_hop_ipv4_lat_first": "-",
            "next_hop_hostname_lat_first": "Local",
            "path_len_lat_first": 0,
            "path_latency_lat_first": 0,
            "version": _text(node, "version"),
        }
    ]
    for route in routes:
        hop_id = _number(route, "next_hop_peer_id")
        hop = by_id.get(hop_id)
        if hop is None:
            continue
        fast = by_id.get(_number(route, "next_hop_peer_id_latency_first"), {})
        direct = _number(route, "cost") == 1
        fast_direct = _number(route, "cost_latency_first") == 1
        rows.append(
            {
                "ipv4": _cidr(route),
                "hostname": _text(route, "hostname"),
                "proxy_cidrs": ",".join(str(cidr) for cidr in _records(route, "proxy_cidrs")),
                "next_hop_ipv4": "DIRECT" if direct else _cidr(hop),
                "next_hop_hostname": "DIRECT" if direct else _text(hop, "hostname"),
                "next_hop_lat": latencies.get(hop_id, 0.0),
                "path_len": _number(route, "cost"),
                "path_latency": _number(route, "path_latency"),
                "next_hop_ipv4_lat_first": "DIRECT" if fast_direct else _cidr(fast),
                "next_hop_hostname_lat_first": "DIRECT" if fast_direct else _text(fast, "hostname"),
                "path_len_lat_first": _number(route, "cost_latency_first"),
                "path_latency_lat_first": _number(route, "path_latency_latency_first"),
                "version": _text(route, "version") or "unknown",
            }
        )
    return rows


def pairs(routes: Sequence[Record], peers: Sequence[Record]) -> list[dict[str, Record | None]]:
    """What `easytier-cli -v peer` lists: the snapshots as they are, each route with its peer."""
    by_id = {_number(peer, "peer_id"): peer for peer in peers}
    return [{"route": route, "peer": by_id.get(_number(route, "peer_id"))} for route in routes]


def size(count: int) -> str:
    """Bytes for people, in decimal units: `0 B`, `1.29 kB`, `2 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if value < 1000 or unit == "PB":
            return f"{value:.0f} {unit}" if value.is_integer() else f"{value:.2f} {unit}"
        value /= 1000
    raise AssertionError("unreachable: the last unit always returns")


def _peer_row(route: Record, peer: Record) -> dict[str, str]:
    cost = _number(route, "cost")
    latency = _latency_ms(peer) if cost == 1 else float(_number(route, "path_latency_latency_first"))
    connections = _records(peer, "conns")
    stats = [_record(connection, "stats") for connection in connections]
    return {
        "cidr": _cidr(route),
        "ipv4": _cidr(route).partition("/")[0],
        "hostname": _text(route, "hostname"),
        "cost": "p2p" if cost == 1 else f"relay({cost})",
        "lat_ms": f"{latency:.2f}",
        "loss_rate": f"{_loss_rate(peer) * 100:.1f}%",
        "rx_bytes": size(sum(_number(stat, "rx_bytes") for stat in stats)),
        "tx_bytes": size(sum(_number(stat, "tx_bytes") for stat in stats)),
        "tunnel_proto": ",".join(
            dict.fromkeys(_protocol(_record(each, "tunnel")) for each in connections if "tunnel" in each)
        ),
        "nat_type": _nat_type(route),
        "id": str(_number(route, "peer_id")),
        "version": _text(route, "version") or "unknown",
    }


def _order(row: Mapping[str, str]) -> tuple[bool, bool, int, str]:
    address = int(ipaddress.IPv4Address(row["ipv4"])) if row["ipv4"] else 0
    return (
        row["cost"] != "Local",
        not row["hostname"].startswith(PUBLIC_SERVER_PREFIX),
        address,
        row["hostname"],
    )


def _latency_ms(peer: Record) -> float:
    """Of the connection in use, else the least of all, in milliseconds; 0 where none is known."""
    found: list[int] = []
    for connection in _records(peer, "conns"):
        latency = _number(_record(connection, "stats"), "latency_us")
        if _text(connection, "conn_id") == _text(peer, "default_conn_id"):
            return latency / 1000
        found.append(latency)
    return min(found, default=0) / 1000


def _loss_rate(peer: Record) -> float:
    connections = _records(peer, "conns")
    used = [each for each in connections if _text(each, "conn_id") == _text(peer, "default_conn_id")]
    for connection in used or connections:
        return float(str(connection.get("loss_rate", 0)))
    return 0.0


def _protocol(tunnel: Record) -> str:
    """Such as `tcp`, or `tcp6` where it runs over IPv6."""
    addresses = (_record(tunnel, key) for key in ("resolved_remote_addr", "local_addr", "remote_addr"))
    url = next((_text(address, "url") for address in addresses if address), "")
    return _text(tunnel, "tunnel_type") + ("6" if "[" in url else "")


def _nat_type(holder: Record) -> str:
    value = _record(holder, "stun_info").get("udp_nat_type", 0)
    return NAT_TYPES[value] if isinstance(value, int) and value < len(NAT_TYPES) else str(value)


def _cidr(route: Record) -> str:
    inet = _record(route, "ipv4_addr")
    if not inet:
        return ""
    address = ipaddress.IPv4Address(_number(_record(inet, "address"), "addr"))
    return f"{address}/{_number(inet, 'network_length')}"


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    return "" if value is None else str(value)


def _number(record: Record, key: str) -> int:
    return int(str(record.get(key) or 0))


def _record(record: Record, key: str) -> Record:
    value = record.get(key)
    return cast(Record, value) if isinstance(value, dict) else {}


def _records(record: Record, key: str) -> list[Record]:
    value = record.get(key)
    return cast(list[Record], value) if isinstance(value, list) else []
