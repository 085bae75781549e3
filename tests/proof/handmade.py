"""Settings written by hand, without what no placement depends on."""

from __future__ import annotations

from tests.proof.drafts import Settings


def machine(
    gpus: int = 0, *, group: str | int | list[str] | None = None, robots: list[Settings] | None = None
) -> Settings:
    """A host, without name and addresses."""
    host: Settings = {"gpus": gpus} if gpus else {}
    if group is not None:
        host["group"] = group
    if robots:
        host["hardware"] = robots
    return host


def settings(hosts: list[Settings], placement: Settings, **rlinf: object) -> Settings:
    """Settings of these hosts, the first of them in the cloud."""
    named = [
        {
            "name": f"h{number}",
            "overlay_ip": f"10.10.0.{10 + number}",
            "ssh": {"address": f"192.0.2.{10 + number}"},
            **host,
        }
        for number, host in enumerate(hosts)
    ]
    return {
        "overlay": {},
        "bootstrap": {"overlay_ip": "10.10.0.1", "ssh": {"address": "203.0.113.5"}},
        "cloud": named[:1],
        "edges": named[1:],
        "rlinf": {"component_placement": placement, **rlinf},
    }


def on(group: str | int, placement: str | int) -> Settings:
    """A component on a group."""
    return {"node_group": group, "placement": placement}
