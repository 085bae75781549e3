"""How each host is reached: in exactly one way."""

from __future__ import annotations

from collections.abc import Iterator

from config.faults import Fault, shown
from config.models import Bastion, Bootstrap, Cluster, Credentials, RayHost
from config.rules.hosts import keyed_hosts


def faults(cluster: Cluster) -> Iterator[Fault]:
    """What is wrong with how hosts are reached."""
    head = next((node for node in cluster.cloud if node.counts), None)
    for key, host in keyed_hosts(cluster):
        yield from _one_way(key, host)
        if isinstance(host, RayHost):
            yield from _join(cluster, key, host, is_head=host is head)


def ways(host: Bootstrap | RayHost) -> dict[str, bool]:
    """Key to whether it is given, of all keys that say how a host is reached."""
    return {
        "ssh.address": host.ssh.address is not None,
        "aws": host.aws is not None,
        "join": isinstance(host, RayHost) and host.join is not None,
    }


def _one_way(key: str, host: Bootstrap | RayHost) -> Iterator[Fault]:
    given = [name for name, is_given in ways(host).items() if is_given]
    choice = " or ".join(name for name in ways(host) if name != "join" or isinstance(host, RayHost))
    if not given:
        rule = f"every host is reached in one way: {choice}"
        yield Fault(f"{key}.ssh.address", None, rule, "add it: host name or IP address, as seen from here or its jump")
    elif len(given) > 1:
        rule = f"every host is reached in one way: {choice}; this one has {' and '.join(given)}"
        yield Fault(f"{key}.{given[-1]}", None, rule, "remove all but one")


def _join(cluster: Cluster, key: str, host: RayHost, *, is_head: bool) -> Iterator[Fault]:
    if host.join is None:
        if host.joined:
            rule = "only a host whose owner runs a join script (join) can have joined"
            yield Fault(f"{key}.joined", "true", rule, "remove it, or add join: overlay or join: script")
        return
    if is_head:
        rule = "the Ray head, the first cloud node, is where the others join and where we log in"
        yield Fault(f"{key}.join", host.join, rule, "write ssh with its address, or list another cloud node first")
    if host.join == "overlay" and cluster.direct:
        rule = "there is no overlay to reach the host over (direct mode)"
        yield Fault(f"{key}.join", host.join, rule, "write ssh with its address, or join: script; or add `overlay: {}`")
    if host.ssh.jump is not None:
        fix = "remove it"
        rule = {
            "overlay": "a host that joins is reached through the bootstrap, over the overlay",
            "script": "nobody logs in to a host with join: script",
        }[host.join]
        jump = host.ssh.jump
        yield Fault(f"{key}.ssh.jump", jump.address if isinstance(jump, Bastion) else jump, rule, fix)
    if host.join == "script":
        for name in ("port", *Credentials.model_fields, "host_key", "connect_timeout"):
            if (value := getattr(host.ssh, name)) is not None:
                rule = "nobody logs in to a host with join: script; of ssh it takes user, the account that Ray runs as"
                seen = None if name.endswith("_secret") else shown(value)  # a password may stand there
                yield Fault(f"{key}.ssh.{name}", seen, rule, "remove it, or write join: overlay")
