"""EasyTier's configuration file for one host. Pure, and without Pulumi.

Keys are those of EasyTier 2.6.4. The network secret is not among them: it reaches easytier-core by its environment
file. `listeners` is always written, since EasyTier would open its full default set without it.
"""

from __future__ import annotations

import json

from components.plan import Member
from config.models import Overlay


def render_toml(overlay: Overlay, member: Member) -> str:
    """The TOML text for `easytier-core --config-file`."""
    listeners = [f"tcp://0.0.0.0:{overlay.port}", f"udp://0.0.0.0:{overlay.port}"] if member.listens else []
    lines = [
        f"hostname = {_text(member.name)}",
        f"ipv4 = {_text(f'{member.ip}/{overlay.cidr.prefixlen}')}",
        f"listeners = [{', '.join(map(_text, listeners))}]",
        "",
        "[network_identity]",
        f"network_name = {_text(overlay.network)}",
    ]
    for peer in member.peers:
        lines += ["", "[[peer]]", f"uri = {_text(peer)}"]
    lines += [
        "",
        "[flags]",
        f"dev_name = {_text(overlay.device)}",
        f"mtu = {overlay.mtu}",
        "private_mode = true",
        *(f"{name} = {_value(value)}" for name, value in overlay.flags if value is not None),
        "",
    ]
    return "\n".join(lines)


def _value(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    """A TOML basic string; its escapes are those of JSON, but for DEL, which settings can't hold."""
    return json.dumps(value, ensure_ascii=False)
