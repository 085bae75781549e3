"""The bootstrap VM of the guide: a host with a public address at which all others join the overlay. No Ray."""

from __future__ import annotations

import pulumi

from components.member import MemberArgs, MemberHost, overlay_needs


class BootstrapVm(MemberHost):
    """The EasyTier bootstrap."""

    def __init__(self, args: MemberArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("BootstrapVm", args, overlay_needs(args.settings.cluster, args.member), opts)
