"""The rules of the network that instances are in: addresses translated one to one, security groups enforced. Pure.

All instances are plugged into one router, which no packet between two of them can avoid. Established connections go on
when a rule goes, as at AWS.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_HAIRPIN = "0x2"
"""The mark of packets from one instance to another's public address."""


@dataclass(frozen=True)
class Rule:
    """What a security group lets through.

    Attributes:
        protocol: `tcp`, `udp`, `icmp`, a number, or `-1` for all.
        first: the first port, of icmp the type; None or -1: all.
        last: the last port.
        cidrs: networks on the other side.
        groups: or instances of these security groups.
    """

    protocol: str
    first: int | None
    last: int | None
    cidrs: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """A security group."""

    ingress: tuple[Rule, ...]
    egress: tuple[Rule, ...]


@dataclass(frozen=True)
class Guest:
    """An instance in the network.

    Attributes:
        public: its public address, None where it has none or no route leads it to the Internet.
        network: the VPC it is in.
    """

    name: str
    private: str
    public: str | None
    network: str
    groups: tuple[str, ...]


def render(guests: Sequence[Guest], groups: Mapping[str, Group]) -> str:
    """The router's rules, for `nft -f`: they replace those there were in one step."""
    public = [guest for guest in guests if guest.public]
    to_private = _elements(f"{guest.public} : {guest.private}" for guest in public)
    to_public = _elements(f"{guest.private} : {guest.public}" for guest in public)
    senders = _elements(guest.private for guest in public)
    lines = ["table ip aws", "delete table ip aws", "table ip aws {"]
    for guest in guests:
        lines += _chain(_name("in", guest), _ingress(guest, guests, groups))
        lines += _chain(_name("out", guest), [*_egress(guest, guests, groups), "drop"])
    lines += _chain(
        "prerouting",
        ["type nat hook prerouting priority dstnat", *([f"dnat to ip daddr map {to_private}"] if public else [])],
    )
    translated = [
        f'oifname "wan" snat to ip saddr map {to_public}',
        f"meta mark {_HAIRPIN} snat to ip saddr map {to_public}",
    ]
    lines += _chain("postrouting", ["type nat hook postrouting priority srcnat", *(translated if public else [])])
    forward = ["type filter hook forward priority filter; policy drop", "ct state established,related accept"]
    if guests:
        forward.append(f'iifname "vpc" oifname "vpc" ct status dnat meta mark set {_HAIRPIN}')
        sources = senders if public else "{ 0.0.0.0 }"
        forward.append(f"meta mark {_HAIRPIN} ip saddr != {sources} drop")
        for network in sorted({guest.network for guest in guests}):
            members = _elements(guest.private for guest in guests if guest.network == network)
            forward.append(
                f'iifname "vpc" oifname "vpc" meta mark != {_HAIRPIN} ip saddr {members} ip daddr != {members} drop'
            )
        out = _elements(f"{guest.private} : jump {_name('out', guest)}" for guest in guests)
        into = _elements(f"{guest.private} : jump {_name('in', guest)}" for guest in guests)
        forward.append(f'iifname "vpc" ip saddr vmap {out}')
        forward.append(f'oifname "vpc" ip daddr vmap {into}')
        if public:
            forward.append(f'iifname "vpc" oifname "wan" ip saddr {senders} accept')
    lines += _chain("forward", forward)
    return "\n".join([*lines, "}"]) + "\n"


def _ingress(guest: Guest, guests: Sequence[Guest], groups: Mapping[str, Group]) -> list[str]:
    lines: list[str] = []
    for rule in (rule for name in guest.groups if name in groups for rule in groups[name].ingress):
        ports = _ports(rule)
        for cidr in rule.cidrs:
            lines.append(f"meta mark != {_HAIRPIN} ip saddr {cidr} {ports} accept")
            network = ipaddress.ip_network(cidr, strict=False)
            near = [each.private for each in guests if each.public and ipaddress.ip_address(each.public) in network]
            if near:
                lines.append(f"meta mark {_HAIRPIN} ip saddr {_elements(near)} {ports} accept")
        if members := _members(rule, guests):
            lines.append(f"meta mark != {_HAIRPIN} ip saddr {members} {ports} accept")
    return lines


def _egress(guest: Guest, guests: Sequence[Guest], groups: Mapping[str, Group]) -> list[str]:
    lines: list[str] = []
    for rule in (rule for name in guest.groups if name in groups for rule in groups[name].egress):
        # What the sender asked for, not what its address was translated to.
        lines += [f"ct original ip daddr {cidr} {_ports(rule)} return" for cidr in rule.cidrs]
        if members := _members(rule, guests):
            lines.append(f"ct original ip daddr {members} {_ports(rule)} return")
    return lines


def _members(rule: Rule, guests: Iterable[Guest]) -> str:
    found = [guest.private for guest in guests if set(guest.groups) & set(rule.groups)]
    return _elements(found) if found else ""


def _ports(rule: Rule) -> str:
    if rule.protocol == "-1":
        return ""
    if rule.protocol in {"icmp", "1"}:
        anything = rule.first is None or rule.first == -1
        return "meta l4proto icmp" if anything else f"icmp type {rule.first}"
    name = {"6": "tcp", "17": "udp"}.get(rule.protocol, rule.protocol)
    if name not in {"tcp", "udp"} or rule.first is None or rule.first == -1:
        return f"meta l4proto {name}"
    return f"{name} dport {rule.first}-{rule.last}"


def _chain(name: str, lines: Sequence[str]) -> list[str]:
    return [f"  chain {name} {{", *(f"    {line}" for line in lines), "  }"]


def _name(way: str, guest: Guest) -> str:
    return f"{way}_{guest.name.replace('-', '_')}"


def _elements(values: Iterable[str]) -> str:
    return "{ " + ", ".join(sorted(set(values))) + " }"
