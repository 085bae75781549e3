"""How to reach and log in to one host: a `connection` or a `proxy` of the program, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.plugin_kit.values import Value, object_of, text_of


@dataclass(frozen=True, slots=True)
class Connection:
    """One SSH endpoint. Secrets are not in its `repr`."""

    host: str
    port: int
    user: str
    password: str | None = field(repr=False)
    private_key: str | None = field(repr=False)
    private_key_password: str | None = field(repr=False)
    agent_socket: str | None
    dial_error_limit: int
    """Failed attempts after which one more failure is final; -1: no limit."""
    per_dial_timeout: int
    """Seconds for making the TCP connection, not for what follows; 0: no limit."""
    host_key: str | None
    proxy: Connection | None


def connection(properties: Mapping[str, Value]) -> Connection:
    """The connection that checked properties describe; defaults are filled in where a state lacks them."""
    proxy = object_of(properties, "proxy")
    return Connection(
        host=text_of(properties, "host") or "",
        port=_number(properties, "port", 22),
        user=text_of(properties, "user") or "root",
        password=text_of(properties, "password"),
        private_key=text_of(properties, "privateKey"),
        private_key_password=text_of(properties, "privateKeyPassword"),
        agent_socket=text_of(properties, "agentSocketPath"),
        dial_error_limit=_number(properties, "dialErrorLimit", 10),
        per_dial_timeout=_number(properties, "perDialTimeout", 15),
        host_key=text_of(properties, "hostKey"),
        proxy=connection(proxy) if proxy else None,
    )


def _number(properties: Mapping[str, Value], name: str, default: int) -> int:
    value = properties.get(name)
    return int(value) if isinstance(value, int | float) else default
