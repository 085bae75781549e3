"""The operator's workstation of a lab: commands of this machine, run in a network namespace of the lab.

It gives `pulumi` and `ssh` wrappers that enter the namespace, an ssh-agent that holds the lab's client key, an ssh
configuration that knows every host, and the environment that ties them together. It changes nothing in the home of
whoever uses it.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from lab import keys, network, topology
from lab.errors import LabError
from lab.paths import VENV
from lab.state import LabFiles, State
from lab.topology import LabHost

# The address of a Unix socket has 108 bytes, with the closing NUL; ssh-agent binds it under a longer name first.
_SOCKET_LIMIT = 90
_WRAPPED = ("pulumi", "ssh", "scp", "sftp", "ssh-keyscan", "curl")


def prepare(files: LabFiles) -> None:
    """Makes what does not depend on the hosts: client key, passphrase and Pulumi backend.

    Raises:
        LabError: the path of the lab's folder is too long for the agent's socket.
    """
    if len(os.fsencode(files.agent)) > _SOCKET_LIMIT:
        raise LabError(
            f"{files.agent} is too long a path for a socket; set RLINF_CLOUD_EDGE_CACHE to a shorter folder, "
            "or give a shorter --name"
        )
    files.root.chmod(0o700)
    keys.create(files.client_key, "ed25519", "operator")
    if not files.passphrase.exists():
        files.passphrase.touch(mode=0o600)
        files.passphrase.write_text(f"{secrets.token_urlsafe(24)}\n")
    files.pulumi.mkdir(exist_ok=True)


def write_commands(files: LabFiles, lab: str, bin_dirs: Sequence[str]) -> None:
    """Writes the wrappers.

    Args:
        files: of the lab.
        lab: its name.
        bin_dirs: where the toolchain's commands are; they go before those on PATH.

    Raises:
        LabError: a command is nowhere to be found.
    """
    files.bin.mkdir(exist_ok=True)
    search = os.pathsep.join([*bin_dirs, *_path_without_labs(files), "/usr/sbin", "/usr/bin"])
    enter = f"nsenter --net={shlex.quote(str(network.path(topology.operator_namespace(lab))))}"
    for command in _WRAPPED:
        real = shutil.which(command, path=search)
        if real is None:
            raise LabError(f"the lab needs the command {command}, which is not on this machine; run script/bootstrap")
        options = f" -F {shlex.quote(str(files.ssh_config))}" if command in {"ssh", "scp", "sftp"} else ""
        wrapper = files.bin / command
        wrapper.write_text(f'#!/bin/sh\nexec {enter} {shlex.quote(real)}{options} "$@"\n')
        wrapper.chmod(0o755)


def _path_without_labs(files: LabFiles) -> list[str]:
    """PATH without the wrappers of labs, which `eval "$(script/lab env)"` puts there: they enter another network."""
    labs = files.root.parent
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [entry for entry in entries if not Path(entry).is_relative_to(labs)]


def write_ssh_config(files: LabFiles, hosts: Sequence[LabHost]) -> None:
    """Writes how ssh reaches each host: by name or address, host keys checked, edges through the bootstrap."""
    keys.write_known_hosts(files, hosts)
    lines: list[str] = []
    for host in hosts:
        lines += [f"Host {host.name} {host.address}", f"  HostName {host.address}"]
        if host.jump is not None:
            lines.append(f"  ProxyJump {host.jump}")
    lines += [
        "Host *",
        "  User debian",
        f'  UserKnownHostsFile "{files.known_hosts}"',
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        f'  IdentityAgent "{files.agent}"',
        "  IdentityFile none",
        "  ConnectTimeout 10",
    ]
    files.ssh_config.write_text("\n".join(lines) + "\n")


def variables(files: LabFiles, state: State) -> dict[str, str]:
    """The variables that make plain `pulumi` and `ssh` commands work on this lab, PATH excepted."""
    return {
        "PULUMI_HOME": state.pulumi_home,
        # Killed between emptying a state file's `.attrs` and filling it, Pulumi 3.274.1 can't load that state any more.
        "PULUMI_BACKEND_URL": f"file://{files.pulumi}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(files.passphrase),
        "PULUMI_STACK": "lab",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "SSH_AUTH_SOCK": str(files.agent),
        **(aws_variables() if state.aws else {}),
    }


def aws_variables() -> dict[str, str]:
    """The variables that have AWS tools speak to the lab's account and to no other."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{topology.AWS_PORT}",
        "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": "lab",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }


def path_entries(files: LabFiles, state: State) -> list[str]:
    """What goes before the rest of PATH."""
    return [str(files.bin), str(VENV / "bin"), *state.bin_dirs]


def environment(files: LabFiles, state: State) -> dict[str, str]:
    """This process's environment with that of the lab over it."""
    search = os.pathsep.join([*path_entries(files, state), os.environ.get("PATH", os.defpath)])
    return {**os.environ, **variables(files, state), "PATH": search}


def exports(files: LabFiles, state: State) -> str:
    """The same as shell commands, for `eval`."""
    entries = os.pathsep.join(path_entries(files, state))
    lines = [f'export PATH={shlex.quote(entries)}:"$PATH"']
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables(files, state).items()]
    return "\n".join(lines) + "\n"


def command(lab: str, argv: Sequence[str]) -> list[str]:
    """The command that runs another one in the operator's namespace."""
    namespace = network.path(topology.operator_namespace(lab))
    return ["nsenter", f"--net={namespace}", "--", *argv]
