"""How Pulumi logs in to each host, with the defaults of `cluster.ssh` filled in. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from config.models import Bootstrap, Cluster, RayHost


@dataclass(frozen=True)
class WayIn:
    """A login."""

    name: str
    """Name of the host."""
    address: str
    """Host name or IP address, as seen from here or from the jump host."""
    port: int
    user: str
    host_key: str | None
    """Public key as in known_hosts, without the address."""
    key_file: str | None
    """Private key file here; None: the SSH agent."""
    connect_timeout: int
    """Seconds for which dialling is tried."""
    jump: WayIn | None
    """The host to log in through."""

    @property
    def endpoint(self) -> str:
        """`address:port`, with the jump host where there is one."""
        return f"{self.address}:{self.port}" + (f" through {self.jump.name}" if self.jump else "")

    @property
    def identity(self) -> str:
        """What makes this machine this machine: its host key, since addresses change; without one, where it is."""
        return self.host_key or self.endpoint


def way_in(cluster: Cluster, host: Bootstrap | RayHost) -> WayIn:
    """How Pulumi logs in to a host of validated settings."""
    given, default = host.ssh, cluster.ssh
    jump = next((other for other in cluster.hosts if other.name == given.jump), None)
    return WayIn(
        name=host.name,
        address=given.address,
        port=given.port or default.port,
        user=given.user or default.user,
        host_key=given.host_key,
        key_file=given.key_file or default.key_file,
        connect_timeout=given.connect_timeout or default.connect_timeout,
        jump=way_in(cluster, jump) if jump is not None else None,
    )
