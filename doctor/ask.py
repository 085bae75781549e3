"""Asks hosts over ssh, several at once, each within a limit. Nothing is changed, here or there."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from doctor.compare import Answer
from doctor.status import read_status

# Stock sshd starts to refuse further logins at ten unfinished ones (MaxStartups), and all may go through one jump host.
_AT_ONCE = 8
_SCRIPT = "/opt/rlinf-cloud-edge/libexec/status.sh"
_COMMAND = (
    f'if [ ! -x {_SCRIPT} ]; then exit 0; elif [ "$(id -u)" = 0 ]; then exec {_SCRIPT}; else exec sudo -n {_SCRIPT}; fi'
)
# What comes first counts in ssh's configuration, so these only fill in. A jump host gets them, too.
_DEFAULTS = """
Host *
  BatchMode yes
  ConnectTimeout 10
  ForwardAgent no
  UpdateHostKeys no
"""


def ask_all(names: Sequence[str], ssh_config: str, limit: float) -> Mapping[str, Answer]:
    """Asks hosts.

    Args:
        names: their names in `ssh_config`.
        ssh_config: how ssh reaches them.
        limit: seconds for each.

    Returns:
        Name to answer, one for every host.
    """
    with tempfile.TemporaryDirectory(prefix="rlinf-doctor-") as folder:
        config = Path(folder) / "ssh_config"
        config.write_text(ssh_config + _DEFAULTS)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            asked = {name: pool.submit(_ask, name, config, limit) for name in names}
            return {name: answer.result() for name, answer in asked.items()}


def _ask(name: str, config: Path, limit: float) -> Answer:
    # A session of its own: a jump host's ssh is a child, and ends with it.
    asked = subprocess.Popen(
        ["ssh", "-F", config, "-T", name, _COMMAND],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    try:
        told, complaint = asked.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return Answer(None, f"no answer within {limit:.0f} s")
    finally:
        if asked.poll() is None:
            os.killpg(asked.pid, signal.SIGKILL)
            asked.communicate()
    if asked.returncode != 0:
        last = next(
            (line for line in reversed(complaint.splitlines()) if line.strip()), f"exit code {asked.returncode}"
        )
        return Answer(
            None, f"not reached: {last.strip()}" if asked.returncode == 255 else f"can't tell: {last.strip()}"
        )
    return Answer(read_status(told))
