"""The lab's commands. Results go to standard output, progress and errors to standard error.

Exit code: 0 done, 1 could not be done (with a message), 2 wrong usage, 130 or 143 interrupted and cleaned up;
`exec` passes on that of the command it ran.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import FrameType

from lab import cgroups, faults, hosts, operator, topology, world
from lab.errors import LabError
from lab.paths import Cache
from lab.processes import seconds_running
from lab.progress import note
from lab.state import State, claimed_names
from lab.topology import Kind, LabHost
from lab.world import Lab

DEFAULT_NAME = "demo"

Command = Callable[[argparse.Namespace, Cache], int]
Apply = Callable[[Lab, LabHost, argparse.Namespace], None]


class Interrupted(KeyboardInterrupt):
    """A signal asked this command to end.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        """Keeps the number."""
        super().__init__(number)
        self.number = number


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: its arguments; those of this process when left out.

    Returns:
        The exit code.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    # What follows `--` is another command's own, options and all.
    own, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, None)
    top = parser()
    arguments = top.parse_args(own)
    command: Command = arguments.command
    if rest is not None and command is not _exec:
        top.error("only `exec` takes a command after `--`")
    arguments.argv = rest
    handle_signals()
    try:
        return command(arguments, Cache.from_environment())
    except Interrupted as interrupted:
        print(f"interrupted ({signal.Signals(interrupted.number).name})", file=sys.stderr)
        return 128 + interrupted.number
    except BrokenPipeError:
        # Whoever read the output has had enough; nothing more can be written, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (LabError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"error: `{' '.join(map(str, error.cmd))}` failed with code {error.returncode}", file=sys.stderr)
        if error.stderr:
            print(error.stderr, file=sys.stderr)
        return 1


def handle_signals() -> None:
    """Has the signals that ask a process to end raise `Interrupted`, once."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="script/lab",
        description="A cloud-edge world on this machine: a bootstrap, cloud nodes, and edges behind NAT, "
        "all booted Debian hosts in network namespaces with no route out.",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument(
        "--name", default=DEFAULT_NAME, help=f"which lab; several can be up at once (default: {DEFAULT_NAME})"
    )

    def add(name: str, command: Command, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=parents)
        sub.set_defaults(command=command)
        return sub

    up = add("up", _up, "bring a lab up, or add hosts to one that is up", named)
    up.add_argument("--edges", type=int, metavar="N", help="edges, each behind a NAT of its own (default: 1)")
    up.add_argument("--clouds", type=int, metavar="N", help="cloud nodes on the public segment (default: 1)")
    up.add_argument(
        "--edge-kind",
        action="append",
        default=[],
        type=_edge_kind,
        metavar="EDGE=KIND",
        help=f"how an edge runs, such as edge-2=container: {', '.join(topology.KINDS)} (default: systemd); repeatable",
    )
    up.add_argument(
        "--aws", action="store_true", help="with an AWS account, whose EC2 instances are booted hosts of the lab"
    )
    down = add("down", _down, "take a lab down, with all that is left of it", named)
    down.add_argument("--all", action="store_true", help="every lab of this cache")
    add("status", _status, "tell which labs are up, with their hosts, and what is left of cut-off ones")
    add("env", _env, 'print what makes plain pulumi and ssh commands work: eval "$(script/lab env)"', named)
    run = add("exec", _exec, "run a command on a host as root, or as the operator", named)
    run.usage = "script/lab exec [-h] [--name NAME] [--user USER] HOST [-- COMMAND ...]"
    run.epilog = "Without a COMMAND, a shell. The exit code is the command's."
    run.add_argument("--user", default="root", help="account on the host (default: root)")
    run.add_argument(
        "host",
        metavar="HOST",
        help=f"name of a host, or `{topology.OPERATOR}`: a command of this machine, in the lab's network",
    )
    add("inventory", _inventory, "print the lab's settings for a Pulumi stack, as YAML", named)
    _add_faults(commands, named)
    return top


def _add_faults(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],  # pyright: ignore[reportPrivateUsage]  # argparse gives this type no public name
    named: argparse.ArgumentParser,
) -> None:
    text = "break something on a host, or put it right again"
    fault = commands.add_parser("fault", help=text, description=f"{text[0].upper()}{text[1:]}.")
    kinds = fault.add_subparsers(required=True, metavar="FAULT")

    def add(name: str, text: str, apply: Apply) -> argparse.ArgumentParser:
        sub = kinds.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=[named])
        sub.add_argument("host", metavar="HOST", help="name of the host")
        sub.set_defaults(command=_fault(apply))
        return sub

    for name, text, fault_of_host in (
        ("link-down", "pull the host's network cable (a reboot puts it in again)", faults.link_down),
        ("link-up", "plug the host's network cable in", faults.link_up),
        ("reboot", "have the host reboot, and wait until it is back", faults.reboot),
        ("stop-host", "cut the host's power; its disk stays", faults.stop_host),
        ("start-host", "switch the host on again, and wait until it is up", faults.start_host),
        ("unfill-disk", "give back the space that fill-disk took", faults.unfill_disk),
        ("wrong-host-key", "give the host other SSH host keys", faults.wrong_host_key),
        ("right-host-key", "give the host its own SSH host keys again", faults.right_host_key),
    ):
        add(name, text, lambda lab, host, _, act=fault_of_host: act(lab, host))
    fill = add(
        "fill-disk",
        "take all free space on the host's disk",
        lambda lab, host, given: faults.fill_disk(lab, host, given.leave),
    )
    fill.add_argument("--leave", type=int, default=0, metavar="MIB", help="MiB to leave free (default: 0)")
    kill = add(
        "kill-process",
        "end processes of the host",
        lambda lab, host, given: faults.kill_process(
            lab, host, given.process, whole_command=given.full, signal=given.signal
        ),
    )
    kill.add_argument("process", metavar="PROCESS", help="exact name of the process")
    kill.add_argument("--full", action="store_true", help="PROCESS is a pattern found in the whole command line")
    kill.add_argument("--signal", default="KILL", help="name of the signal (default: KILL)")
    for name, text, fault_of_port in (
        ("block-port", "drop what arrives at the host for a port (a reboot lifts it)", faults.block_port),
        ("unblock-port", "let through again what arrives for a port", faults.unblock_port),
    ):
        block = add(name, text, lambda lab, host, given, act=fault_of_port: act(lab, host, given.port, given.protocol))
        block.add_argument("port", type=_port, metavar="PORT", help="the port")
        block.add_argument("--protocol", choices=("tcp", "udp"), default="tcp", help="default: tcp")


def _up(arguments: argparse.Namespace, cache: Cache) -> int:
    world.up(
        Lab(cache, arguments.name), arguments.clouds, arguments.edges, dict(arguments.edge_kind), aws=arguments.aws
    )
    return 0


def _down(arguments: argparse.Namespace, cache: Cache) -> int:
    topology.check_name(arguments.name)
    for name in claimed_names(cache) if arguments.all else [arguments.name]:
        if not world.down(Lab(cache, name)):
            note(f"The lab {name} is not up, and nothing is left of it")
    return 0


def _status(_: argparse.Namespace, cache: Cache) -> int:
    world.check_root()
    names = claimed_names(cache)
    if not names:
        print("no lab is up")
    for name in names:
        _print_status(Lab(cache, name))
    return 0


def _print_status(lab: Lab) -> None:
    state = lab.files.load()
    if state is None or state.phase != "up":
        print(
            f"lab {lab.name}: being made, or cut off; `script/lab down --name {lab.name}` removes what is left of it:"
        )
        for thing in world.remains(lab):
            print(f"  {thing}")
        return
    print(f"lab {lab.name}: up since {state.started_at}, a bootstrap, {state.topology.shape}")
    for role in ("mirror", "agent", *(["aws"] if state.aws else [])):
        if not state.processes[role].alive:
            print(f"  the {role} has ended; `script/lab up --name {lab.name}` starts it again")
    for host in state.topology.hosts:
        print(f"  {host.name:<12} {host.address:<15} {_host_status(lab, state, host)}")
    for instance in lab.files.load_aws_hosts():
        pid = hosts.leader(lab.name, instance.name)
        how = f"on, leader {pid}" if pid is not None else "booting" if instance.runs else "stopped"
        print(f"  {instance.name} {instance.public_address or '-':<15} {instance.private_address:<15} {how}")


def _host_status(lab: Lab, state: State, host: LabHost) -> str:
    runner = state.processes[f"host/{host.name}"]
    pid = hosts.leader(lab.name, host.name)
    if pid is not None and runner.alive:
        return f"on for {timedelta(seconds=round(seconds_running(runner)))}, leader {pid}"
    return "switched off" if host.name in state.stopped else "has ended"


def _env(arguments: argparse.Namespace, cache: Cache) -> int:
    lab = Lab(cache, arguments.name)
    print(operator.exports(lab.files, lab.state()), end="")
    return 0


def _inventory(arguments: argparse.Namespace, cache: Cache) -> int:
    print(world.settings(Lab(cache, arguments.name)), end="")
    return 0


def _exec(arguments: argparse.Namespace, cache: Cache) -> int:
    world.check_root()
    lab = Lab(cache, arguments.name)
    argv: list[str] = arguments.argv or ["/bin/bash"]
    state = lab.state()
    if arguments.host == topology.OPERATOR:
        environment = operator.environment(lab.files, state)
        command = operator.command(lab.name, argv)
    else:
        host = lab.host(arguments.host)
        environment = dict(os.environ)
        command = hosts.command_in(hosts.running_leader(lab.name, host.name), argv, arguments.user)
        # What is left running on the host belongs to it, and ends with it.
        cgroups.join(f"{hosts.group(lab.name, host.name)}/exec")
    sys.stdout.flush()
    os.execvpe(command[0], command, environment)  # noqa: S606  # becoming the command passes on signals and exit code


def _fault(apply: Apply) -> Command:
    def command(arguments: argparse.Namespace, cache: Cache) -> int:
        world.check_root()
        lab = Lab(cache, arguments.name)
        apply(lab, lab.host(arguments.host), arguments)
        return 0

    return command


def _edge_kind(text: str) -> tuple[str, Kind]:
    name, _, kind = text.partition("=")
    for known in topology.KINDS:
        if kind == known:
            return name, known
    raise argparse.ArgumentTypeError(f"{text}: give EDGE=KIND, where KIND is one of {', '.join(topology.KINDS)}")


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: give 1 to 65535")
    return int(text)


def _interrupt(number: int, _: FrameType | None) -> None:
    # Cleaning up must not be interrupted again: a second Ctrl-C would leave half of it.
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)
