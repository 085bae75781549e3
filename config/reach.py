"""How Pulumi logs in to each host, with the defaults of `cluster.ssh` filled in. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from config.defaults import IMAGE_USERS
from config.instance import CONNECT_TIMEOUT, instance_of
from config.models import Bootstrap, Cluster, RayHost

_ELASTIC_IP = "its elastic IP"
"""What stands for the address of a host that is created here, until it is known."""


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
        """`address:port`, with the jump host where there is one: what makes this machine this machine."""
        return f"{self.address}:{self.port}" + (f" through {self.jump.name}" if self.jump else "")


def way_in(cluster: Cluster, host: Bootstrap | RayHost) -> WayIn | None:
    """How Pulumi logs in to a host of validated settings; None where it never does (`join: script`)."""
    given, default = host.ssh, cluster.ssh
    created = instance_of(cluster, host)
    image_user = IMAGE_USERS[created.image] if created is not None and created.image is not None else None
    jump = next((other for other in cluster.hosts if other.name == given.jump), None)
    address = given.address or (_ELASTIC_IP if host.aws is not None else None)
    if isinstance(host, RayHost) and host.join == "overlay":
        address = str(host.overlay_ip)
        jump = next((bootstrap for bootstrap in cluster.bootstraps if not bootstrap.lost), None)
    if address is None:
        return None
    return WayIn(
        name=host.name,
        address=address,
        port=given.port or default.port,
        user=given.user or image_user or default.user,
        host_key=given.host_key,
        key_file=given.key_file or default.key_file,
        connect_timeout=given.connect_timeout or (CONNECT_TIMEOUT if created else default.connect_timeout),
        jump=way_in(cluster, jump) if jump is not None else None,
    )
