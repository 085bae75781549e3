"""What differs between what should be and what is, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.plan import Expected, Plan
from doctor.status import Status


@dataclass(frozen=True)
class Answer:
    """What came of asking a host."""

    status: Status | None
    """None: it was not reached, or not asked."""
    why: str = ""
    """Why there is no status."""


@dataclass(frozen=True)
class Finding:
    """A host, as it should be and as it is."""

    expected: Expected
    answer: Answer
    differences: list[str] = field(default_factory=list[str])
    """Empty: as planned, as far as could be seen."""


def compare(plan: Plan, answers: Mapping[str, Answer]) -> list[Finding]:
    """Every host of the plan, with what differs."""
    told = answers.get(plan.head.name)
    head = told.status if told else None
    findings: list[Finding] = []
    for host in plan.hosts:
        if host.state == "lost":
            findings.append(Finding(host, Answer(None, "lost: not asked")))
            continue
        answer = answers.get(host.name, Answer(None, "not asked: Pulumi does not log in to it"))
        findings.append(Finding(host, answer, [*_host(plan, host, answer, head), *_in_ray(host, head)]))
    return findings


def _host(plan: Plan, host: Expected, answer: Answer, head: Status | None) -> list[str]:
    status = answer.status
    if status is None:
        return [answer.why] if host.login else []
    if not status.installed:
        return ["nothing of this project is on it: it was removed, or the machine is another one"]
    found = [f"{path} was changed by hand" for path in status.changed]
    if plan.easytier is not None:
        found += _overlay(plan, host, status)
    elif (host.device, host.ip) not in status.addresses:
        found.append(f"{host.device} has no address {host.ip}")
    if host.rank is not None:
        found += _ray(plan, host, status, head)
    elif status.ray is not None:
        found.append(f"Ray is there ({status.ray}), and the host takes no part")
    return found


def _overlay(plan: Plan, host: Expected, status: Status) -> list[str]:
    if status.easytier != "active":
        return [f"EasyTier does not run: its service is {status.easytier or 'not there'}"]
    found = _boot("EasyTier", status.services, status.easytier_boot)
    if (host.device, host.ip) not in status.addresses:
        found.append(f"{host.device} has no address {host.ip}")
    if status.echo != "active":
        found.append(f"the echo service does not run: it is {status.echo or 'not there'}")
    if status.paths is None:
        found.append("EasyTier runs, but does not answer on its RPC port")
        return found
    if status.easytier_version != plan.easytier:
        found.append(f"EasyTier {status.easytier_version} runs, not {plan.easytier}")
    for other in plan.hosts:
        needed = other.role in ("bootstrap", "head") and other.state != "lost" and other is not host
        if needed and other.ip not in status.paths:
            found.append(f"EasyTier knows no way to {other.name} ({other.ip})")
    return found


def _ray(plan: Plan, host: Expected, status: Status, head: Status | None) -> list[str]:
    found: list[str] = []
    if status.ports_closed is False:
        found.append("the rules that close Ray's ports to other networks are gone")
    if status.ray != "active":
        return [*found, f"Ray does not run: its service is {status.ray or 'not there'}"]
    found += _boot("Ray", status.services, status.ray_boot)
    if not status.ray_runs:
        return [*found, "Ray waits for its address or for the head"]
    if status.rank != str(host.rank):
        found.append(f"Ray runs with RLINF_NODE_RANK={status.rank}, not {host.rank}")
    if status.ray_device != host.device:
        found.append(f"Ray runs with RLINF_COMM_NET_DEVICES={status.ray_device}, not {host.device}")
    if status.ray_ip != host.ip:
        found.append(f"Ray runs on {status.ray_ip}, not {host.ip}")
    if status.ray_version != plan.ray:
        found.append(f"Ray {status.ray_version} runs, not {plan.ray}")
    python = status.python_version
    if plan.python is not None and not f"{python}.".startswith(f"{plan.python}."):
        found.append(f"Python {python} runs, not {plan.python}")
    elif head is not None and head.python_version not in (None, python):
        found.append(f"Python {python} runs, and {head.python_version} on the head")
    return found


def _boot(what: str, services: str, boot: str) -> list[str]:
    return [f"{what} does not start at boot: it is {boot or 'not enabled'}"] * (
        services == "systemd" and boot != "enabled"
    )


def _in_ray(host: Expected, head: Status | None) -> list[str]:
    """What the head says of a node, which it knows whether we reach that node or not."""
    if head is None or head.nodes is None:
        return []
    if host.rank is not None and host.ip not in head.nodes:
        return ["the head does not have it among Ray's nodes"]
    if host.rank is None and host.role != "bootstrap" and host.ip in head.nodes:
        return ["the head has it among Ray's nodes, and it takes no part"]
    return []
