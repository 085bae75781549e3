"""The rules of the policy pack over what the program registers, and what a pack can't see."""

from __future__ import annotations

from collections.abc import Iterator

from config.models import Cluster
from policy.rules import INSTANCE, Ports, breaches
from tests.program.harness import Recorder


def violations(recorder: Recorder, cluster: Cluster) -> list[str]:
    """Every breach: name of the resource, and what is wrong with it."""
    return [f"{name}: {fault}" for name, fault in _all(recorder, ports_of(cluster))]


def ports_of(cluster: Cluster) -> Ports:
    """What the settings open."""
    given = [cluster.aws, *(host.aws for host in cluster.hosts)]
    return Ports(
        easytier=cluster.overlay.port if cluster.overlay is not None else None,
        ssh=frozenset({cluster.ssh.port, *(host.ssh.port for host in cluster.hosts if host.ssh.port is not None)}),
        ssh_from_anywhere=any(choices is not None and choices.ssh_from == "anywhere" for choices in given),
        gcs=cluster.ray.port,
    )


def _all(recorder: Recorder, ports: Ports) -> Iterator[tuple[str, str]]:
    for name, args in recorder.resources.items():
        yield from ((name, fault) for fault in breaches(args.typ, args.inputs, ports))
        # A pack is given secrets as they are.
        if args.typ == INSTANCE and not isinstance(args.inputs["userDataBase64"], dict):
            yield name, "its user data, with the host key, is no secret"
