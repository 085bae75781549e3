"""Security groups as the rules of the AWS world's router."""

from __future__ import annotations

from lab.aws_world.firewall import Group, Guest, Rule, render

ONE = Guest("i-1", "172.31.0.4", "203.0.113.60", "vpc-1", ("sg-1",))
TWO = Guest("i-2", "172.31.0.5", None, "vpc-1", ("sg-2",))
OTHER = Guest("i-3", "10.0.0.4", None, "vpc-2", ("sg-1",))
SSH = Rule("tcp", 22, 22, ("203.0.113.0/24",), ())
FROM_ONE = Rule("udp", 11010, 11012, (), ("sg-1",))
ALL = Rule("-1", None, None, ("0.0.0.0/0",), ())


def chain(text: str, name: str) -> list[str]:
    """The lines of one chain."""
    body = text.split(f"chain {name} {{\n")[1].split("\n  }\n", maxsplit=1)[0]
    return [line.strip() for line in body.splitlines()]


def rules(*guests: Guest) -> str:
    """The rules of guests whose groups let in ssh, and udp from the first."""
    return render(guests, {"sg-1": Group((SSH,), (ALL,)), "sg-2": Group((FROM_ONE,), ())})


def test_without_instances_nothing_passes() -> None:
    forward = chain(render([], {}), "forward")
    assert forward == [
        "type filter hook forward priority filter; policy drop",
        "ct state established,related accept",
    ]


def test_a_network_lets_in_its_addresses_also_from_instances_that_have_one_of_them() -> None:
    assert chain(rules(ONE, TWO), "in_i_1") == [
        "meta mark != 0x2 ip saddr 203.0.113.0/24 tcp dport 22-22 accept",
        "meta mark 0x2 ip saddr { 172.31.0.4 } tcp dport 22-22 accept",
    ]


def test_a_group_lets_in_its_members_by_their_private_addresses_alone() -> None:
    assert chain(rules(ONE, TWO), "in_i_2") == ["meta mark != 0x2 ip saddr { 172.31.0.4 } udp dport 11010-11012 accept"]


def test_an_instance_without_rules_outwards_sends_nothing() -> None:
    assert chain(rules(ONE, TWO), "out_i_2") == ["drop"]
    assert chain(rules(ONE, TWO), "out_i_1") == ["ct original ip daddr 0.0.0.0/0  return", "drop"]


def test_only_those_with_a_public_address_are_translated_and_reach_the_internet() -> None:
    text = rules(ONE, TWO)
    assert "dnat to ip daddr map { 203.0.113.60 : 172.31.0.4 }" in chain(text, "prerouting")
    assert 'iifname "vpc" oifname "wan" ip saddr { 172.31.0.4 } accept' in chain(text, "forward")


def test_networks_do_not_reach_each_other() -> None:
    forward = chain(rules(ONE, TWO, OTHER), "forward")
    members = "{ 172.31.0.4, 172.31.0.5 }"
    assert (f'iifname "vpc" oifname "vpc" meta mark != 0x2 ip saddr {members} ip daddr != {members} drop') in forward
