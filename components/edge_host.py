"""An edge host of the guide: a robot's computer or a workstation, often behind NAT, that nobody's cloud owns."""

from __future__ import annotations

import pulumi

from components.member import MemberArgs, RayMember


class EdgeHost(RayMember):
    """An edge host."""

    def __init__(self, args: MemberArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("EdgeHost", args, opts)
