"""What the tests of join scripts share: the settings, the routers, and the owners of hosts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from lab import network, topology
from lab.stack import Edit, Stack
from tests.lab.cluster_fixtures import accounts_on, files_on, ok

RLINF_VENV = "/opt/rlinf/venv"
"""Where the lab's hosts have RLinf's environment."""


def joining(joins: Mapping[str, str], *, joined: bool = False, repair: str | None = None, mtu: int = 1380) -> Edit:
    """An edit of the lab's settings; the first edge has its Ray in RLinf's environment.

    Args:
        joins: name of an edge → its `join`. Other edges up to the last of these stay as they are; later ones go.
        joined: whether they have.
        repair: the cluster's `repair`.
        mtu: the overlay's.
    """

    def edit(cluster: dict[str, Any]) -> None:
        last = max(index for index, edge in enumerate(cluster["edges"]) if edge["name"] in joins)
        del cluster["edges"][last + 1 :]
        cluster["repair"] = repair
        cluster["overlay"]["mtu"] = mtu
        cluster["edges"][0]["ray"] = {"venv": RLINF_VENV}
        for edge in cluster["edges"]:
            if edge["name"] not in joins:
                continue
            ssh = edge.pop("ssh")
            edge["join"] = joins[edge["name"]]
            if edge["join"] == "overlay":
                edge["ssh"] = {"host_key": ssh["host_key"]}
            if joined:
                edge["joined"] = True

    return edit


def let_nobody_in(stack: Stack, *numbers: int) -> None:
    """Has the routers of these edges drop what the bootstrap asks for."""
    for number in numbers:
        rule = f"insert rule inet router forward ip saddr {topology.BOOTSTRAP_ADDRESS} tcp dport 22 drop"
        network.run_in(topology.router_namespace(stack.lab.name, number), "nft", "-f", "-", stdin=rule)


@contextmanager
def without(stack: Stack, host: str, *addresses: str) -> Generator[None, None, None]:
    """A host that has no way to some addresses."""
    for address in addresses:
        ok(stack.lab.exec(host, "ip", "route", "add", "unreachable", address))
    try:
        yield
    finally:
        for address in addresses:
            ok(stack.lab.exec(host, "ip", "route", "del", "unreachable", address))


def as_it_was(stack: Stack, host: str) -> tuple[set[str], str]:
    """Files and accounts of a host that has booted, once its sudo, the owner's own, has made what it needs."""
    if stack.lab.lab.host(host).kind == "systemd":
        stack.lab.exec(host, "systemctl", "is-system-running", "--wait")
    ok(stack.lab.exec(host, "sudo", "-n", "true", user="debian"))
    return files_on(stack, host), accounts_on(stack, host)


def join_scripts(stack: Stack) -> dict[str, str]:
    """The join scripts, as the operator reads them."""
    return json.loads(stack.pulumi("stack", "output", "join_scripts", "--show-secrets", "--json"))


def run_as_owner(stack: Stack, host: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What comes of a join script that the owner of a host runs there, from a file in his home."""
    file = f"/home/debian/join-{host}.sh"
    ok(stack.lab.exec(host, "sh", "-c", f"umask 077; cat >{file}", user="debian", stdin=script))
    try:
        return stack.lab.exec(host, "sudo", "-n", "bash", file, *options, user="debian", limit=300)
    finally:
        ok(stack.lab.exec(host, "rm", file))


def nodes_table(stack: Stack) -> dict[str, dict[str, Any]]:
    """Host name to its row of the output `nodes`."""
    return {row["name"]: row for row in stack.outputs()["nodes"]}
