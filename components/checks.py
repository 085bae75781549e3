"""Checks: all hosts are checked before anything is changed on any of them, and what is wrong with them is told at once.

Then each host gets its programs. That a host waits for the checks of all is no dependency in Pulumi's state, which
would be N × N of them: the program does not tell Pulumi of the next step before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pulumi
from pulumi_command import remote

from components.member import MemberHost
from components.round import Round


def equip(hosts: Sequence[MemberHost], over: Sequence[pulumi.Resource] | None = None) -> None:
    """Checks hosts, and equips them once all of them have passed.

    Args:
        hosts: all of them. Those that we never log in to are passed over, those that are absent are not checked.
        over: when left out, the hosts that are reached without the overlay; else what must be there before the others
            are reached.
    """
    waits = over or []
    hosts = [host for host in hosts if host.is_ours and host.is_over_overlay == (over is not None)]
    there = [host for host in hosts if not host.member.is_absent]
    checks = Round(host.check_name for host in there)
    hooks = _hooks(checks, there[0].check_name) if there else pulumi.ResourceHookBinding()
    passed = _passed(checks, {host.check_name: host.check(hooks, waits) for host in there})
    for host in hosts:
        host.prepare(passed, [] if host.member.is_absent else waits)


def _hooks(checks: Round, name: str) -> pulumi.ResourceHookBinding:
    """What keeps a round of checks informed.

    Args:
        checks: the round.
        name: tells it apart from other rounds.
    """

    def begins(args: pulumi.ResourceHookArgs) -> None:
        checks.begins(args.name)

    async def fails(args: pulumi.ErrorHookArgs) -> bool:
        missed = await checks.fails(args.name)
        if missed and args.name == checks.failed[0]:
            pulumi.log.warn(f"not checked yet: {_hosts(missed)}")
        return False

    beginning = pulumi.ResourceHook(f"begin-{name}", begins)
    return pulumi.ResourceHookBinding(
        before_create=[beginning],
        before_update=[beginning],
        on_error=[pulumi.ErrorHook(f"fail-{name}", fails)],
    )


def _passed(checks: Round, commands: Mapping[str, remote.Command]) -> pulumi.Input[None]:
    """What is known once all checks have passed.

    In a preview, at once: no check is made there, and every host would seem to change with a check of any.
    """
    if pulumi.runtime.is_dry_run():
        return None

    async def ended(name: str, command: remote.Command) -> None:
        await command.urn.future()
        checks.ends(name)

    async def all_passed() -> None:
        ends = await asyncio.gather(*(ended(*each) for each in commands.items()), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end
        # Pulumi goes on where it was told to, with --continue-on-error.
        if checks.failed:
            raise pulumi.RunError(f"not passed by {_hosts(checks.failed)}, so nothing was changed on any host")

    return pulumi.Output.from_input(all_passed())


def _hosts(checks: Sequence[str]) -> str:
    return ", ".join(check.removesuffix("-check") for check in checks)
