"""The long-running helpers of a lab: the HTTP mirror and the operator's ssh-agent.

Each runs in the lab's control group and in a session of its own, so that it outlives the command that started it
and is found when the lab is taken down.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from lab import cgroups, network, topology
from lab.errors import LabError
from lab.paths import CLONE
from lab.polling import wait_for
from lab.processes import Process
from lab.state import LabFiles

_START_LIMIT_S = 20
_JOIN_THEN_RUN = 'for group; do shift; test "$group" = -- && break; echo $$ >"$group/cgroup.procs"; done; exec "$@"'


def start_mirror(files: LabFiles, lab: str, folder: Path) -> Process:
    """Serves a folder at http://203.0.113.80/.

    Returns:
        The server, answering.

    Raises:
        LabError: it does not answer.
    """
    namespace = topology.mirror_namespace(lab)
    server = Path(__file__).with_name("mirror_server.py")
    with files.mirror_log.open("ab") as log:
        process = _start(
            f"{lab}/mirror",
            ["nsenter", f"--net={network.path(namespace)}",
             sys.executable, "-I", str(server), str(folder), topology.MIRROR_ADDRESS, "80"],
            log,
        )  # fmt: skip

    def listening() -> bool | None:
        return True if ":80 " in network.run_in(namespace, "ss", "-Hltn") else None

    _await(listening, process, "the mirror", files.mirror_log)
    return process


def start_agent(files: LabFiles, lab: str) -> Process:
    """Starts an ssh-agent that holds the operator's key.

    Raises:
        LabError: it does not answer, or refuses the key.
    """
    files.agent.unlink(missing_ok=True)
    log_path = files.root / "agent.log"
    with log_path.open("ab") as log:
        process = _start(f"{lab}/agent", ["ssh-agent", "-D", "-a", str(files.agent)], log)
    _await(lambda: agent_answers(files.agent), process, "the ssh-agent", log_path)
    added = subprocess.run(
        ["ssh-add", "-q", str(files.client_key)],
        env={**os.environ, "SSH_AUTH_SOCK": str(files.agent)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if added.returncode != 0:
        raise LabError(f"the ssh-agent refused the operator's key: {added.stderr.strip()}")
    return process


def start_aws(files: LabFiles, lab: str, image: Path, shared: Path) -> Process:
    """Starts the AWS world: an account at http://127.0.0.1:4566 of the operator, whose instances are hosts.

    Args:
        files: of the lab.
        lab: its name.
        image: base root filesystem of the hosts.
        shared: folder that the hosts see as /opt/rlinf.

    Returns:
        The process, answering.

    Raises:
        LabError: it does not answer.
    """
    namespace = topology.operator_namespace(lab)
    with files.aws_log.open("ab") as log:
        process = _start(
            f"{lab}/aws",
            ["nsenter", f"--net={network.path(namespace)}", "env", f"PYTHONPATH={CLONE}",
             sys.executable, "-m", "lab.aws_world.server", lab, str(files.root), str(image), str(shared)],
            log,
        )  # fmt: skip

    def listening() -> bool | None:
        return True if f":{topology.AWS_PORT} " in network.run_in(namespace, "ss", "-Hltn") else None

    _await(listening, process, "the AWS world", files.aws_log)
    return process


def agent_answers(socket: Path) -> bool | None:
    """True once an ssh-agent answers at that socket, None before: its socket is there earlier than it listens."""
    asked = subprocess.run(
        ["ssh-add", "-l"],
        env={**os.environ, "SSH_AUTH_SOCK": str(socket)},
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    # 2: no agent is reached; 1: it has no keys (ssh-add(1)).
    return True if asked.returncode in {0, 1} else None


def _start(group: str, argv: Sequence[str], log: IO[bytes]) -> Process:
    folders = cgroups.create(group)
    started = subprocess.Popen(
        ["sh", "-c", _JOIN_THEN_RUN, "sh", *map(str, folders), "--", *argv],
        cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    process = Process.of(started.pid)
    if process is None:
        raise LabError(f"`{' '.join(argv)}` ended at once; see {log.name}")
    return process


def _await(ready: Callable[[], bool | None], process: Process, what: str, log: Path) -> None:
    def probe() -> bool | None:
        if not process.alive:
            raise LabError(f"{what} ended as soon as it was started: {log.read_text(errors='replace').strip()}")
        return ready()

    if wait_for(probe, _START_LIMIT_S) is None:
        raise LabError(f"{what} did not answer in {_START_LIMIT_S} s; see {log}")
