"""What the fault tests share: the gate as the judge of a cluster, and the time it takes to be whole again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lab import hosts
from lab.polling import wait_for
from lab.stack import Stack

HEAD = "cloud-1"


@dataclass
class Judge:
    """Asks a cluster what `pulumi up` asks last: whether every planned rank is there and works."""

    stack: Stack
    stdin: str
    """What the gate's script read in `pulumi up`."""
    whole: str
    """Its line of result there: every rank, and its address."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Fault to the seconds until the gate had passed, counted from the end of its cause."""

    def ask(self) -> str | None:
        """The line of result; None where the gate does not pass, or the head does not answer."""
        if hosts.leader(self.stack.lab.name, HEAD) is None:
            return None
        told = self.stack.lab.exec(HEAD, "/opt/rlinf-cloud-edge/libexec/gate.sh", "up", stdin=self.stdin, limit=300)
        return told.stdout.splitlines()[-1] if told.returncode == 0 else None

    def recovers(self, fault: str, limit: float, since: float | None = None) -> None:
        """Waits until the cluster is what it was, with nobody's help, and notes how long that took.

        Args:
            fault: what happened, for the table.
            limit: seconds it may take.
            since: when the fault's cause ended, by `time.monotonic`; now where that is left out.
        """
        started = time.monotonic() if since is None else since
        told = wait_for(self.ask, limit)
        took = time.monotonic() - started
        assert told == self.whole, f"after {fault}, the gate says {told!r} after {took:.0f} s"
        assert took < limit
        self.seconds[fault] = round(took, 1)


def judge_of(stack: Stack) -> Judge:
    """The judge of a cluster that is up, from what its state says of the gate."""
    resources = json.loads(stack.pulumi("stack", "export", "--show-secrets"))["deployment"]["resources"]
    gate = next(resource for resource in resources if resource["urn"].endswith("::cloud-1-gate"))
    return Judge(stack, json.loads(gate["inputs"]["stdin"]["plaintext"]), gate["outputs"]["stdout"].strip())


def changes(probe: Callable[[], str], before: str, limit: float) -> str:
    """Waits until a probe tells something else than before, and returns that."""

    def other() -> str | None:
        told = probe()
        return told if told and told != before else None

    told = wait_for(other, limit)
    assert told is not None, f"still {before!r} after {limit:.0f} s"
    return told
