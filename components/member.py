"""What the guide's three kinds of host have in common: a component that checks and equips its host.

Its membership in the overlay (`easytier.py`) and its Ray (`ray_node.py`) become children of it later, since both
wait for other hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_command import remote

from components.host import Host, make_host
from components.machines import Machine
from components.plan import Member, Plan, RayPorts
from config.defaults import RPC_PORT
from config.load import Settings
from config.models import Bootstrap, Cluster, RayHost
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

    @property
    def there(self) -> pulumi.Output[Member]:
        """The host's place once all addresses are known."""
        return self.later.apply(lambda plan: plan.member(self.member.name))


class MemberHost(pulumi.ComponentResource):
    """A host that takes part in the cluster, checked and equipped."""

    def __init__(
        self,
        kind: str,
        args: MemberArgs,
        prepare: Mapping[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Prepares the host.

        Args:
            kind: last part of the component's type.
            args: what it is made from.
            prepare: settings of `prepare.sh`.
            opts: as for every resource.
        """
        super().__init__(f"rlinf:cloudedge:{kind}", args.member.name, {}, opts)
        self.args = args
        self._host = make_host(args.settings, args.host, args.machines)
        self._prepared: remote.Command | None = None
        if self._host is not None:
            self._prepared = self._host.prepare(prepare, pulumi.ResourceOptions(parent=self))
            if pulumi.runtime.is_dry_run():
                # `pulumi up` has it from the host itself.
                self._prepared.stdout.apply(self._warn_of_reboots)
        self.register_outputs({"overlay_ip": args.member.ip})

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
        """The command that is done when the host is checked and equipped.

        Raises:
            ValueError: we never log in to it.
        """
        if self._prepared is None:
            raise ValueError(f"nobody logs in to {self.member.name}")
        return self._prepared

    @property
    def member(self) -> Member:
        """The host's place in the plan."""
        return self.args.member

    @property
    def facts(self) -> pulumi.Output[str]:
        """The line of facts that the checks end with: `ready architecture=... services=... ray=... python=...`."""
        return self.prepared.stdout.apply(str.strip)

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
        way = way_in(cluster, args.host)
        user = way.user if way is not None else ""
        network = direct_settings(args.member) if args.plan.direct else overlay_settings(cluster)
        super().__init__(kind, args, {**network, **ray_settings(cluster, args.plan.ports, user)}, opts)


def head_of(nodes: Sequence[RayMember]) -> RayMember:
    """The Ray head: the node of rank 0."""
    return next(node for node in nodes if node.member.role == "head")


def overlay_settings(cluster: Cluster) -> dict[str, str]:
    """What `prepare.sh` needs to know about the overlay; nothing in direct mode."""
    if cluster.overlay is None:
        return {}
    easytier = cluster.overlay.easytier
    return {
        "EASYTIER_VERSION": easytier.version,
        "EASYTIER_URL": easytier.url,
        "EASYTIER_SHA256_X86_64": easytier.sha256.get("x86_64", ""),
        "EASYTIER_SHA256_AARCH64": easytier.sha256.get("aarch64", ""),
        "OVERLAY_PORT": str(cluster.overlay.port),
        "RPC_PORT": str(RPC_PORT),
    }


def direct_settings(member: Member) -> dict[str, str]:
    """What `prepare.sh` needs to know where there is no overlay."""
    return {"ADDRESS": member.ip, "DEVICE": member.device}


def ray_settings(cluster: Cluster, ports: RayPorts, user: str) -> dict[str, str]:
    """What `prepare.sh` needs to know about Ray."""
    ray = cluster.ray
    return {
        "RAY_VERSION": ray.version,
        "RAY_PYTHON": ray.python,
        "RAY_VENV": ray.venv or "",
        "RAY_PORTS": " ".join(map(str, ports.fixed)),
        "RAY_INDEX_URL": ray.index_url or "",
        "RAY_FIND_LINKS": ray.find_links or "",
        "RAY_USER": user,
        "UV_VERSION": ray.uv.version,
        "UV_URL": ray.uv.url,
        "UV_SHA256_X86_64": ray.uv.sha256.get("x86_64", ""),
        "UV_SHA256_AARCH64": ray.uv.sha256.get("aarch64", ""),
    }
