"""The hosts of hosts.json, checked and equipped in the program's own order; what is done on them is noted, no more."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pulumi
import pulumi_command

from components.checks import equip
from components.failure import Explanations, say_nothing_after_the_engine
from components.host import Host

say_nothing_after_the_engine()


class Noting:
    """A host whose check is a line of shell, and which notes that it is equipped."""

    is_ours, is_over_overlay = True, False
    member = SimpleNamespace(is_absent=False)

    def __init__(self, name: str, given: dict[str, Any], explanations: Explanations) -> None:
        connection = pulumi_command.remote.ConnectionArgs(**given["connection"])
        self.name, self.given = name, given
        self.host = Host(name, "nobody", name, given["identity"], connection, 5, explanations, repair="")
        self.check_name = f"{name}-check"

    def check(self, hooks: pulumi.ResourceHookBinding, waits: Sequence[pulumi.Resource]) -> pulumi.Resource:
        opts = pulumi.ResourceOptions(depends_on=list(waits), hooks=hooks)
        return self.host._command("check", self.given["check"], None, pulumi.Output.from_input(""), opts)

    def prepare(self, passed: pulumi.Input[None], waits: Sequence[pulumi.Resource]) -> None:
        # As `Host.prepare` does.
        stdin = pulumi.Output.from_input(self.given["settings"])
        if passed is not None:
            stdin = pulumi.Output.all(stdin, passed).apply(lambda known: known[0])
        up, down = (
            f"cat >/dev/null; echo {self.name}-{word} >> {self.given['journal']}" for word in ("prepare", "down")
        )
        opts = pulumi.ResourceOptions(depends_on=list(waits))
        self.host._command("prepare", up, down, stdin, opts)


explanations = Explanations()
hosts = json.loads(pathlib.Path("hosts.json").read_text())
equip([Noting(name, given, explanations) for name, given in hosts.items()])  # type: ignore[list-item]
