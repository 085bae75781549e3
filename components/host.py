"""A machine we can run things on: its connection, its privilege and the scripts that it gets.

The only module that builds an SSH connection. What runs remotely are the files in `scripts/`; settings reach them
on standard input, one `KEY=value` a line, so that nothing of them is in an argument, and nothing needs quoting.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import pulumi
from pulumi_command import remote

from components.failure import Explanations, Reached
from components.machines import Machine
from components.packing import packed_checks, packed_scripts, script, scripts_digest
from config.load import Settings
from config.models import Bootstrap, RayHost
from config.ranks import ranked
from config.reach import WayIn, way_in

LIBEXEC = "/opt/rlinf-cloud-edge/libexec"

_DIAL_SECONDS = 3
_CLOUD_INIT_SECONDS = 900
"""How long the first boot of a machine that we create may take, once its sshd answers."""
# The pauses of pulumi-command 1.2.1 between two dials: 0.1 s, each half as long again, at most 5 s.
_FIRST_PAUSE, _PAUSE_GROWTH, _LONGEST_PAUSE = 0.1, 1.5, 5.0


def dial_attempts(seconds: float) -> int:
    """How many dials to allow so that a host that refuses them is tried for at least that long.

    A host that does not answer at all takes up to `_DIAL_SECONDS` more for each.
    """
    attempts, waited, pause = 1, 0.0, _FIRST_PAUSE
    while waited < seconds:
        waited += pause
        pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE)
        attempts += 1
    return attempts


@dataclass(frozen=True)
class Host:
    """A machine that we log in to. From here on nobody cares where it came from."""

    name: str
    user: str
    """The account that we log in as, and that Ray runs as."""
    endpoint: str
    """`address:port`, with the jump host where there is one."""
    identity: pulumi.Input[str]
    """What makes this machine this machine."""
    connection: remote.ConnectionArgs
    connect_timeout: int
    """Seconds for which dialling is tried."""
    explanations: Explanations
    """What is said when its commands fail."""
    repair: str
    """`cluster.repair`: any new value runs every script again."""
    machine: Machine | None = None
    """The machine, where this program creates it."""
    waits: Sequence[pulumi.Resource] = ()
    """What must be there before the first login, here or at the jump host."""
    absent: bool = False
    """Whether the machine is gone, or has not joined yet; `connection` is then another host's."""
    port: int = 22
    """TCP port of its sshd."""
    over_overlay: bool = False
    """Whether we log in over the overlay, which the removal of it ends."""

    def check(self, settings: Mapping[str, str], opts: pulumi.ResourceOptions) -> remote.Command:
        """Checks the host, and leaves nothing there: there is nothing to undo, so nobody logs in to undo it.

        Args:
            settings: what `check.sh` reads.
            opts: parent, dependencies and hooks.
        """
        if self.machine is not None:
            settings = {**settings, "CLOUD_INIT_LIMIT": str(_CLOUD_INIT_SECONDS)}
        stdin = self._stdin(settings).apply(lambda text: _entered(text, packed_checks()))
        return self._command("check", "exec bash -s -- check.sh", None, stdin, opts)

    def prepare(
        self, settings: Mapping[str, str], opts: pulumi.ResourceOptions, passed: pulumi.Input[None], *, leads: bool
    ) -> remote.Command:
        """Installs the scripts and what they need; undone by removing everything.

        Args:
            settings: what `prepare.sh` reads.
            opts: parent and dependencies.
            passed: what must have come true before.
            leads: whether it may be the head.
        """
        if self.over_overlay:
            settings = {**settings, "REACHED": "overlay"}
        stdin = self._stdin(settings).apply(lambda text: _entered(text, packed_scripts(leads=leads)))
        if passed is not None:
            stdin = pulumi.Output.all(stdin, passed).apply(lambda known: known[0])
        return self._command("prepare", "exec bash -s -- prepare.sh up", "exec bash -s -- prepare.sh down", stdin, opts)

    def run(
        self,
        step: str,
        settings: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions,
        *,
        planned: Sequence[pulumi.Input[str]] = (),
    ) -> remote.Command:
        """Runs `scripts/<step>.sh up` as root; destroying the resource runs it with `down`.

        Args:
            step: name of the script.
            settings: what it reads on standard input; kept as a secret.
            opts: parent and dependencies.
            planned: where the settings depend on other commands' results, what is known of them in a preview. With a
                secret among it, the command line is one.
        """
        path = f"{LIBEXEC}/{step}.sh"
        sudo = "" if self.user == "root" else "sudo -n "
        stdin = pulumi.Output.secret(self._stdin({**settings, "SCRIPTS": scripts_digest()}))
        up: pulumi.Input[str] = f"exec {sudo}{path} up"
        if planned:
            # In a preview, pulumi-command takes settings that depend on another command's result for unchanged. So that
            # the preview shows what will be done, the command line changes with what is planned, too.
            up = _marked(up, [*planned, self.repair, scripts_digest()])
        down = f"test ! -e {path} || exec {sudo}{path} down"
        if self.over_overlay and step == "overlay":
            # We could not log in again for the rest: `prepare` undoes it, at the end and with all else.
            down = "exec cat >/dev/null"
        return self._command(step, up, down, stdin, opts)

    def _command(
        self,
        step: str,
        up: pulumi.Input[str],
        down: str | None,
        stdin: pulumi.Output[str],
        opts: pulumi.ResourceOptions,
    ) -> remote.Command:
        name = f"{self.name}-{step}"
        if self.absent:
            return self._forgotten(name, opts)
        limit = f"{self.connect_timeout + (_DIAL_SECONDS + 1) * dial_attempts(self.connect_timeout)}s"
        return remote.Command(
            name,
            connection=self.connection,
            create=up,
            delete=down,
            stdin=stdin,
            # Stock sshd refuses the environment variables that pulumi-command would send.
            add_previous_output_in_env=False,
            logging=remote.Logging.STDERR,
            # Another machine is another host: the old one is cleaned first, over the old connection.
            triggers=[self.identity],
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    # Not for a check, which would take with it what the old machine has, before others are checked.
                    delete_before_replace=down is not None,
                    depends_on=list(self.waits),
                    # What is undone on a machine that is about to go is for nobody.
                    deleted_with=self.machine.resource if self.machine is not None else None,
                    # A jump host that is let to wait has TCP's own limit of about two minutes for a single dial; this
                    # ends the dialling after it. It is longer than all dials take elsewhere, since it would hide
                    # their reason, and it does not end a command that runs.
                    custom_timeouts=pulumi.CustomTimeouts(create=limit, update=limit, delete=limit),
                    hooks=self.explanations.of(
                        name, Reached(self.name, self.endpoint, self.over_overlay, created=self.machine is not None)
                    ),
                ),
                # Hooks of these come after ours: they may take their time.
                opts,
            ),
        )

    def _forgotten(self, name: str, opts: pulumi.ResourceOptions) -> remote.Command:
        """The command of an absent host: nothing runs for it, not even when its entry is deleted.

        What is recorded of it stays as it is. Where nothing is recorded, a command that does nothing, on a host that
        is there, takes the place.
        """
        return remote.Command(
            name,
            connection=self.connection,
            create="true",
            add_previous_output_in_env=False,
            logging=remote.Logging.STDERR,
            triggers=[self.identity],
            opts=pulumi.ResourceOptions.merge(
                opts,
                pulumi.ResourceOptions(
                    depends_on=list(self.waits),
                    ignore_changes=["connection", "create", "delete", "stdin", "triggers", "logging"],
                    retain_on_delete=True,
                    delete_before_replace=True,
                ),
            ),
        )

    def _stdin(self, settings: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[str]:
        # An output for each plain text would be most of the work of a large cluster's preview.
        known = {name: value for name, value in settings.items() if isinstance(value, str)}
        later = {name: value for name, value in settings.items() if not isinstance(value, str)}
        known |= {"HOST": self.name, "REPAIR": self.repair}
        if not later:
            return pulumi.Output.from_input(settings_text(known))
        return pulumi.Output.all(**later).apply(lambda told: settings_text({**known, **told}))


def make_host(
    settings: Settings, host: Bootstrap | RayHost, machines: Mapping[str, Machine], explanations: Explanations
) -> Host | None:
    """The machine of one entry of the settings; None where we never log in to it.

    Args:
        settings: all of them.
        host: the entry.
        machines: host name to the machine that is created for it.
        explanations: those of all hosts.
    """
    cluster = settings.cluster
    way = way_in(cluster, host)
    if way is None:
        return None
    absent = host.lost or (isinstance(host, RayHost) and host.pending)
    machine = machines.get(host.name)
    if not absent and machine is None:
        _warn_of_strangers(way)
    used = (way_in(cluster, ranked(cluster)[0]) or way) if absent else way
    return Host(
        name=host.name,
        user=way.user,
        port=way.port,
        endpoint=way.endpoint,
        identity=way.identity if machine is None else machine.identity,
        connection=_connection(settings, used, machines),
        connect_timeout=way.connect_timeout,
        explanations=explanations,
        repair=cluster.repair or "",
        machine=machine,
        waits=[each for name in (used.name, used.jump and used.jump.name) for each in _ready(machines, name)],
        absent=absent,
        over_overlay=isinstance(host, RayHost) and host.join == "overlay",
    )


def _ready(machines: Mapping[str, Machine], name: str | None) -> Sequence[pulumi.Resource]:
    return machines[name].ready if name is not None and name in machines else ()


def _warn_of_strangers(way: WayIn) -> None:
    """Warns of each host on the way that could be another machine."""
    hosts = [("ssh.host_key", way)]
    if way.jump is not None and way.jump.is_bastion:
        hosts.append(("ssh.jump.host_key", way.jump))
    for key, host in hosts:
        if host.host_key is None:
            pulumi.log.warn(
                f"{way.name}: no {key}, so another machine could pose as {host.place}. Print the key with the command "
                f"below, and compare it on the host:\n    {host.show_host_key}"
            )


class _Login(TypedDict):
    """What a connection and a jump host have in common."""

    host: pulumi.Input[str]
    port: int
    user: str
    host_key: pulumi.Input[str] | None
    private_key: pulumi.Output[str] | None
    private_key_password: pulumi.Output[str] | None
    password: pulumi.Output[str] | None
    per_dial_timeout: int
    dial_error_limit: int


def _login(settings: Settings, way: WayIn, machines: Mapping[str, Machine]) -> _Login:
    machine = machines.get(way.name)
    proof = settings.proofs[way.credentials]
    return _Login(
        host=way.address if machine is None else machine.address,
        port=way.port,
        user=way.user,
        host_key=way.host_key if machine is None else machine.host_key,
        private_key=proof.private_key,
        private_key_password=proof.key_passphrase,
        password=proof.password,
        per_dial_timeout=_DIAL_SECONDS,
        dial_error_limit=dial_attempts(way.connect_timeout),
    )


def _connection(settings: Settings, way: WayIn, machines: Mapping[str, Machine]) -> remote.ConnectionArgs:
    proxy = remote.ProxyConnectionArgs(**_login(settings, way.jump, machines)) if way.jump else None
    return remote.ConnectionArgs(**_login(settings, way, machines), proxy=proxy)


def settings_text(settings: Mapping[str, str]) -> str:
    """The settings as the scripts read them: `KEY=value`, one a line, in a stable order.

    Raises:
        ValueError: a value is not one line; the caller should have encoded it.
    """
    for key, value in settings.items():
        if "\n" in value or "\0" in value:
            raise ValueError(f"the setting {key} is not one line")
    return "".join(f"{key}={settings[key]}\n" for key in sorted(settings))


def _entered(settings: str, archive: str) -> str:
    """Standard input for bash: `enter.sh`, and what that reads."""
    return f"{script('enter.sh')}{settings}scripts\n{archive}\n"


def encoded(text: str) -> str:
    """Several lines as one: base64."""
    return base64.b64encode(text.encode()).decode()


def _marked(command: str, planned: Sequence[pulumi.Input[str]]) -> pulumi.Input[str]:
    """A command line that ends with a comment, the mark of what is planned."""
    # An output for each plain text would be most of the work of a large cluster's preview.
    known = [text for text in planned if isinstance(text, str)]
    if len(known) == len(planned):
        return f"{command} # {mark_of(known)}"
    return pulumi.Output.all(*planned).apply(lambda told: f"{command} # {mark_of(told)}")


def mark_of(planned: Sequence[str]) -> str:
    """Four digits that change with what is planned: shown to everybody, so too few to guess a password by."""
    return hashlib.sha256(json.dumps(planned).encode()).hexdigest()[:4]
