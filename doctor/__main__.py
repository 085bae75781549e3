"""`script/doctor`: asks every host of a stack what runs there, and tells what differs from what was planned."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from doctor.ask import ask_all
from doctor.compare import compare
from doctor.plan import NoPlanError, read_outputs
from doctor.table import render, to_json

AS_PLANNED, DIFFERS, NOT_ASKED = 0, 1, 2

_EPILOG = """
Reads the outputs of the stack's last `pulumi up` that passed, then asks all hosts at once, over ssh.
Exit code: 0 all is as planned; 1 something differs, or a host was not reached; 2 nobody could be asked.
"""


def main() -> int:
    """Asks, compares and prints; returns the exit code."""
    arguments = _parser().parse_args()
    try:
        plan = read_outputs(_outputs(arguments.cwd, arguments.stack))
    except NoPlanError as error:
        print(f"error: {error}.", file=sys.stderr)
        return NOT_ASKED
    answers = ask_all([host.name for host in plan.hosts if host.login], plan.ssh_config, arguments.timeout)
    findings = compare(plan, answers)
    print((to_json if arguments.json else render)(plan, findings), end="")
    if answers and not any(answer.status for answer in answers.values()):
        return NOT_ASKED
    return DIFFERS if any(finding.differences for finding in findings) else AS_PLANNED


def _outputs(folder: Path, stack: str | None) -> dict[str, object]:
    if shutil.which("pulumi") is None:
        raise NoPlanError('the command pulumi is not on PATH; install it, or in a lab run `eval "$(script/lab env)"`')
    command = ["pulumi", "stack", "output", "--json", "--non-interactive", "--color", "never"]
    if stack is not None:
        command += ["--stack", stack]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoPlanError(f"`{' '.join(command[:3])}` failed: {done.stderr.strip().removeprefix('error: ')}")
    return json.loads(done.stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/doctor",
        description="Says what runs on every host of a stack, and what differs from the plan. Changes nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-s", "--stack", help="another stack than the selected one")
    parser.add_argument("-C", "--cwd", type=Path, default=Path(), metavar="FOLDER", help="the project's folder")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument(
        "--timeout", type=float, default=30, metavar="SECONDS", help="how long a host may take (default: 30)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
