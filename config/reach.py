"""How Pulumi logs in to each host, with the defaults of `cluster.ssh` filled in. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from config.defaults import IMAGE_USERS
from config.instance import CONNECT_TIMEOUT, instance_of
from config.models import Bastion, Bootstrap, Cluster, Credentials, Login, RayHost


@dataclass(frozen=True)
class WayIn:
    """A login."""

    name: str
    """Name of the host; of a bastion, `user@address:port`."""
    address: str
    """Host name or IP address, as seen from here or from the jump host; IPv6 without brackets."""
    port: int
    user: str
    host_key: str | None
    """Public key as in known_hosts, without the address."""
    credentials: Credentials | None
    """What the login proves itself with: its own, else those of `cluster.ssh`. None: the SSH agent."""
    connect_timeout: int
    """Seconds for which dialling is tried."""
    jump: WayIn | None
    """The host to log in through."""
    is_bastion: bool = False
    """Whether it is no host of the cluster."""

    @property
    def place(self) -> str:
        """`address:port`."""
        return endpoint(self.address, self.port)

    @property
    def endpoint(self) -> str:
        """`address:port`, with the jump host where there is one."""
        if self.jump is None:
            return self.place
        return f"{self.place} through {self.jump.place if self.jump.is_bastion else self.jump.name}"

    @property
    def show_host_key(self) -> str:
        """The command that prints the host's public key, run on the jump host where there is one."""
        scan = shlex.join(["ssh-keyscan", "-t", "ed25519", *_port_option(self.port), self.address])
        jump = self.jump
        if jump is None:
            return scan
        key = jump.credentials.key_file if jump.credentials else None
        identity = f"-i {_path(key)} " if key else ""
        return f"ssh {identity}{shlex.join([*_port_option(jump.port), f'{jump.user}@{jump.address}'])} {scan}"

    @property
    def identity(self) -> str:
        """What makes this machine this machine: its host key, since addresses change; without one, where it is."""
        return self.host_key or self.endpoint


def endpoint(address: str, port: int) -> str:
    """Address and port in one; an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def way_in(cluster: Cluster, host: Bootstrap | RayHost) -> WayIn | None:
    """How Pulumi logs in to a host, which may be at fault in how it is jumped to; None where it never does."""
    given = host.ssh
    if isinstance(host, RayHost) and host.join == "overlay":
        via = next((bootstrap for bootstrap in cluster.bootstraps if not bootstrap.lost), None)
        return _way(cluster, given, str(host.overlay_ip), host, _directly(cluster, via))
    address = _own_address(host)
    if address is None:
        return None
    if isinstance(given.jump, Bastion):
        jump = _way(cluster, given.jump, given.jump.address, None, None)
    else:
        jump = _directly(cluster, next((other for other in cluster.hosts if other.name == given.jump), None))
    return _way(cluster, given, address, host, jump)


def _directly(cluster: Cluster, host: Bootstrap | RayHost | None) -> WayIn | None:
    """The way in to a jump host, which has no jump of its own."""
    address = _own_address(host) if host is not None else None
    if host is None or address is None:
        return None
    return _way(cluster, host.ssh, address, host, None)


def _own_address(host: Bootstrap | RayHost) -> str | None:
    """The address of a host; until it is known, something that stands for that of one that is created here."""
    return host.ssh.address or (f"{host.name}'s elastic IP" if host.aws is not None else None)


def _way(cluster: Cluster, given: Login, address: str, host: Bootstrap | RayHost | None, jump: WayIn | None) -> WayIn:
    default = cluster.ssh
    created = instance_of(cluster, host) if host is not None else None
    image_user = IMAGE_USERS[created.image] if created is not None and created.image is not None else None
    user, port = given.user or image_user or default.user, given.port or default.port
    return WayIn(
        name=host.name if host is not None else f"{user}@{endpoint(address, port)}",
        address=address,
        port=port,
        user=user,
        host_key=given.host_key,
        credentials=given.credentials or default.credentials,
        connect_timeout=given.connect_timeout or (CONNECT_TIMEOUT if created else default.connect_timeout),
        jump=jump,
        is_bastion=host is None,
    )


def _path(text: str) -> str:
    """A path as a shell takes it; an unquoted tilde is the home folder, as it is in the settings."""
    return f"~/{shlex.quote(text[2:])}" if text.startswith("~/") else shlex.quote(text)


def _port_option(port: int) -> list[str]:
    return [] if port == 22 else ["-p", str(port)]
