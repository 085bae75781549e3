"""What an instance is launched from: chosen when it is to be another one, and kept as long as it stays.

The current image of a release changes every few weeks, and what we ask of cloud-init with our own versions. Neither may
replace, or even restart, a machine that runs. A dynamic resource keeps what was chosen; Pulumi's `ignore_changes` would
not do, since it gives an instance that is replaced the old image, too, which may be withdrawn by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import dynamic


class _Keeper(dynamic.ResourceProvider):
    """Takes what is offered when the occasion is a new one."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Takes what is offered."""
        return dynamic.CreateResult("kept", {**props, "kept": props["offered"]})

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Only a new occasion counts."""
        return dynamic.DiffResult(changes=olds["occasion"] != news["occasion"])

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Takes what is offered."""
        return dynamic.UpdateResult({**news, "kept": news["offered"]})


class Launch(dynamic.Resource, module="cloudedge", name="Launch"):
    """What an instance is launched from."""

    kept: pulumi.Output[dict[str, Any]]
    """What was offered when the occasion was last a new one."""

    def __init__(
        self, name: str, occasion: Mapping[str, Any], offered: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> None:
        """Keeps a choice.

        Args:
            name: of the resource.
            occasion: what makes the instance another one.
            offered: what to take at a new occasion.
            opts: as for every resource.
        """
        super().__init__(_Keeper(), name, {"occasion": dict(occasion), "offered": dict(offered), "kept": None}, opts)
