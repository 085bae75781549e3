"""Machines that the program creates, as the rest of it sees them: whose they are is nobody's concern any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pulumi

from config.instance import instance_of
from config.load import Settings
from config.located import Site, located
from config.models import Cluster


@dataclass(frozen=True)
class Machine:
    """A machine that this program creates."""

    address: pulumi.Output[str]
    """Its public address, known once it exists. It stays when the machine is stopped, started or replaced."""
    host_key: pulumi.Output[str]
    """Public SSH host key, as in known_hosts."""
    identity: pulumi.Output[str]
    """Another one is another machine, to be set up from the beginning."""
    resource: pulumi.Resource
    """What is deleted when the machine is: nothing need be undone on it before."""
    ready: Sequence[pulumi.Resource]
    """What must be there before the first login."""


def create_machines(settings: Settings) -> Mapping[str, Machine]:
    """Host name to machine, of the hosts that are created here.

    Raises:
        Refused: AWS says that the settings are wrong, or lets nobody in.
    """
    cluster = settings.cluster
    wanted = [instance for host in cluster.hosts if (instance := instance_of(cluster, host)) is not None]
    if not wanted:
        return {}
    # Only here: a stack without such a host needs neither the package nor credentials.
    from components.aws import create_instances  # noqa: PLC0415

    return create_instances(settings, wanted)


def when_there(cluster: Cluster, machines: Mapping[str, Machine]) -> pulumi.Output[Cluster]:
    """The settings with the addresses and host keys of the machines, once those are known."""
    sites = {
        name: pulumi.Output.all(machine.address, machine.host_key).apply(lambda told: Site(*told))
        for name, machine in machines.items()
    }
    # The SDK's types do not say that what is inside of a mapping is waited for as well.
    known = cast("pulumi.Output[Mapping[str, Site]]", pulumi.Output.from_input(sites))
    return known.apply(lambda there: located(cluster, there))
