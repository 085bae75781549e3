"""A cloud node of the guide: a GPU host in the cloud; the first one is the Ray head, rank 0."""

from __future__ import annotations

import pulumi

from components.member import MemberArgs, RayMember


class CloudNode(RayMember):
    """A cloud node."""

    def __init__(self, args: MemberArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("CloudNode", args, opts)
