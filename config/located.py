"""Hosts that are created here, once they are there: hosts like any other, with an address and a host key. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from config.models import Bootstrap, Cluster, EdgeHost, RayHost

H = TypeVar("H", bound=Bootstrap | RayHost)


@dataclass(frozen=True)
class Site:
    """Where a host is that was created."""

    address: str
    """Its public address."""
    host_key: str
    """Public SSH host key, as in known_hosts."""


def located(cluster: Cluster, sites: Mapping[str, Site]) -> Cluster:
    """The settings as they would be had these hosts been there before.

    Args:
        cluster: the settings.
        sites: host name to site, of the hosts that are created.
    """

    def there(host: H) -> H:
        site = sites.get(host.name)
        if site is None:
            return host
        ssh = host.ssh.model_copy(update={"address": site.address, "host_key": site.host_key})
        public = {} if isinstance(host, EdgeHost) else {"public_address": site.address}
        return host.model_copy(update={"ssh": ssh, **public})

    if not sites:
        return cluster
    bootstrap = cluster.bootstrap
    if bootstrap is not None:
        bootstrap = there(bootstrap) if isinstance(bootstrap, Bootstrap) else list(map(there, bootstrap))
    return cluster.model_copy(
        update={
            "bootstrap": bootstrap,
            "cloud": list(map(there, cluster.cloud)),
            "edges": list(map(there, cluster.edges)),
        }
    )
