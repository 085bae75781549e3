"""What the guide's three kinds of host have in common: a component with what its host must have, and what it is given.

Its checks and its programs (`checks.py`), its membership in the overlay (`easytier.py`) and its Ray (`ray_node.py`)
become children of it later, since each waits for other hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_command import remote

from components.failure import Explanations
from components.host import Host, make_host
from components.machines import Machine
from components.plan import Member, Plan, RayPorts
from config.defaults import RPC_PORT
from config.load import Settings
from config.models import Bootstrap, CloudNode, Cluster, RayHost
from config.reach import way_in


@dataclass(frozen=True)
class MemberArgs:
    """What a host component is made from."""

    settings: Settings
    plan: Plan
    host: Bootstrap | RayHost
    """The host's entry in the settings."""
    member: Member
    """The host's place in the plan."""
    machines: Mapping[str, Machine]
    """Host name to the machine that is created for it."""
    later: pulumi.Output[Plan]
    """The plan once all addresses are known."""
    explanations: Explanations
    """What is said when commands fail."""

    def of_place(self, make: Callable[[Member], str]) -> pulumi.Input[str]:
        """A text about the host's place in the plan: known at once, unless addresses are still to be given out."""
        if not self.machines:
            return make(self.member)
        return self.later.apply(lambda plan: make(plan.member(self.member.name)))


@dataclass(frozen=True)
class Needs:
    """What a host is to be like, before and after."""

    checked: Mapping[str, str]
    """What `check.sh` reads."""
    given: Mapping[str, str]
    """What `prepare.sh` reads."""

    def __or__(self, other: Needs) -> Needs:
        return Needs({**self.checked, **other.checked}, {**self.given, **other.given})


class MemberHost(pulumi.ComponentResource):
    """A host that takes part in the cluster."""

    def __init__(
        self,
        kind: str,
        args: MemberArgs,
        needs: Needs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Names the host; nothing is done to it yet.

        Args:
            kind: last part of the component's type.
            args: what it is made from.
            needs: what is looked for and installed there.
            opts: as for every resource.
        """
        super().__init__(f"rlinf:cloudedge:{kind}", args.member.name, {}, opts)
        self.args = args
        self.needs = needs
        self._host = make_host(args.settings, args.host, args.machines, args.explanations)
        self._prepared: remote.Command | None = None
        if args.member.state == "pending":
            pulumi.log.warn(pending(args.member), self)
        self.register_outputs({"overlay_ip": args.member.ip})

    @property
    def check_name(self) -> str:
        """Name of the command that checks the host."""
        return f"{self.member.name}-check"

    def check(self, hooks: pulumi.ResourceHookBinding, waits: Sequence[pulumi.Resource]) -> remote.Command:
        """Checks the host.

        Args:
            hooks: for the command.
            waits: what must be there before.
        """
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(waits), hooks=hooks)
        return self.host.check(self.needs.checked, opts)

    def prepare(self, passed: pulumi.Input[None], waits: Sequence[pulumi.Resource]) -> remote.Command:
        """Equips the host.

        Args:
            passed: what must have come true before, its own check included.
            waits: what must be there before.
        """
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(waits))
        leads = isinstance(self.args.host, CloudNode)
        self._prepared = self.host.prepare(self.needs.given, opts, passed, leads=leads)
        if pulumi.runtime.is_dry_run():
            # `pulumi up` has it from the host itself.
            self._prepared.stdout.apply(self._warn_of_reboots)
        return self._prepared

    @property
    def is_over_overlay(self) -> bool:
        """Whether we log in over the overlay, which the host's owner has made it join."""
        return self._host is not None and self._host.over_overlay

    @property
    def is_ours(self) -> bool:
        """Whether we ever log in to the host; if not, its owner's join script does all."""
        return self._host is not None

    @property
    def host(self) -> Host:
        """The machine.

        Raises:
            ValueError: we never log in to it.
        """
        if self._host is None:
            raise ValueError(f"nobody logs in to {self.member.name}")
        return self._host

    @property
    def prepared(self) -> remote.Command:
        """The command that is done when the host is equipped.

        Raises:
            ValueError: it is not to be, so far.
        """
        if self._prepared is None:
            raise ValueError(f"{self.member.name} is not to be equipped")
        return self._prepared

    @property
    def member(self) -> Member:
        """The host's place in the plan."""
        return self.args.member

    def _warn_of_reboots(self, facts: str) -> None:
        if "services=supervised" in facts.split():
            pulumi.log.warn(
                f"{self.member.name}: there is no systemd, so its EasyTier and Ray will not survive a reboot of the "
                "machine or a restart of the container; afterwards, bring them back with a new value of cluster.repair",
                self,
            )


class RayMember(MemberHost):
    """A host that runs Ray."""

    def __init__(self, kind: str, args: MemberArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        cluster = args.settings.cluster
        network = direct_needs(args.member) if args.plan.direct else overlay_needs(cluster, args.member)
        super().__init__(kind, args, network | ray_needs(cluster, args.plan.ports, ray_host(args.host)), opts)

    @property
    def ray_facts(self) -> pulumi.Output[str]:
        """What there is of Ray once the host is equipped: `ray=... python=... venv=...`.

        Of the line that `prepare.sh` ends with, no more, so that Ray's step does not change with another EasyTier.
        """
        return self.prepared.stdout.apply(ray_facts)

    @property
    def join(self) -> str | None:
        """How the host's owner makes it join, where it does so by a script."""
        return self.args.host.join if isinstance(self.args.host, RayHost) else None


def ray_facts(line: str) -> str:
    """Of the line `ready architecture=... ray=... python=... venv=...` what is about Ray."""
    return " ".join(word for word in line.split() if word.startswith(("ray=", "python=", "venv=")))


def head_of(nodes: Sequence[RayMember]) -> RayMember:
    """The Ray head: the node of rank 0."""
    return next(node for node in nodes if node.member.role == "head")


def pending(member: Member) -> str:
    """What is to do for a host that has not joined yet."""
    return (
        f"{member.name} has not joined yet: the gate does without it, and the RLinf config counts it. Give its owner "
        f"the script in the secret output join_scripts; once it has run there, write joined: true on its entry"
    )


def overlay_needs(cluster: Cluster, member: Member) -> Needs:
    """What a host needs for the overlay; nothing in direct mode."""
    if cluster.overlay is None:
        return Needs({}, {})
    easytier = cluster.overlay.easytier
    release = {
        "EASYTIER_VERSION": easytier.version,
        "EASYTIER_SHA256_X86_64": easytier.sha256.get("x86_64", ""),
        "EASYTIER_SHA256_AARCH64": easytier.sha256.get("aarch64", ""),
    }
    checked = {
        "EASYTIER_IF_PRESENT": easytier.if_present,
        "OVERLAY_PORT": str(cluster.overlay.port) if member.listens else "",
        "RPC_PORT": str(RPC_PORT),
    }
    return Needs({**release, **checked}, {**release, "EASYTIER_URL": easytier.url})


def direct_needs(member: Member) -> Needs:
    """What a host needs where there is no overlay."""
    return Needs({"ADDRESS": member.ip, "DEVICE": member.device}, {})


def ray_host(host: Bootstrap | RayHost) -> RayHost:
    """The entry of a host that can run Ray."""
    if isinstance(host, RayHost):
        return host
    raise TypeError(f"{host.name} is a bootstrap")


def ray_needs(cluster: Cluster, ports: RayPorts, host: RayHost) -> Needs:
    """What a host needs for its Ray."""
    ray = cluster.ray
    environment = cluster.ray_environment(host)
    there = {
        "RAY_VERSION": ray.version,
        "RAY_VENV": environment.venv or "",
        "RAY_ACTIVATE": environment.activate or "",
        "RAY_USER": _ray_user(cluster, host),
    }
    given = {
        "RAY_PYTHON": ray.python,
        "RAY_INDEX_URL": ray.index_url or "",
        "RAY_FIND_LINKS": ray.find_links or "",
        "RAY_LOCK_URL": ray.lock.url if ray.lock else "",
        "RAY_LOCK_SHA256": ray.lock.sha256 if ray.lock else "",
        "UV_VERSION": ray.uv.version,
        "UV_URL": ray.uv.url,
        "UV_SHA256_X86_64": ray.uv.sha256.get("x86_64", ""),
        "UV_SHA256_AARCH64": ray.uv.sha256.get("aarch64", ""),
    }
    checked = {"RAY_PORTS": " ".join(map(str, ports.fixed)), "GPUS": _gpus(cluster, host)}
    return Needs({**there, **checked}, {**there, **given})


def _ray_user(cluster: Cluster, host: RayHost) -> str:
    """The account that Ray runs as. Left open, a join script takes the account of whoever runs it."""
    way = way_in(cluster, host)
    return way.user if way is not None else host.ssh.user or ""


def _gpus(cluster: Cluster, host: RayHost) -> str:
    """How many accelerators a host must have; nothing where the settings don't say, or where RLinf counts none."""
    groups = [cluster.rlinf.node_groups.get(label) for label in host.groups]
    ignored = all(group is not None and group.ignore_hardware for group in groups)
    return str(host.gpus) if "gpus" in host.model_fields_set and not ignored else ""
