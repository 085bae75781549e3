"""The environment of an activation command, as a file that systemd, sh and supervise.py read alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from components.scripts import environment_file
from components.scripts.service_unit import read_environment

HOSTILE = {
    "QUOTES": """a "b" 'c' \\ \\n end\\""",
    "EXPANSIONS": "$HOME ${HOME} $(id) `id` !!",
    "LINES": "first\nEVIL=1\n\n  last\n",
    "TABS": "a\tb ",
    "WORDS": "größer 机器 🤖",
    "COMMENT": "# no; comment",
    "EMPTY": "",
}


def written(**variables: str) -> tuple[str, list[str]]:
    """The file for these variables, and what is left out of it."""
    return environment_file.lines([f"{name}={value}".encode() for name, value in variables.items()])


def as_sh_reads(text: str, folder: Path) -> dict[str, str]:
    """What `launch.sh` makes of the file."""
    file = folder / "ray.env"
    file.write_text(text)
    command = ["env", "-i", "bash", "-c", 'set -a && . "$0" && set +a && exec env -0', str(file)]
    told = subprocess.run(command, capture_output=True, check=True).stdout.split(b"\0")
    return dict(entry.decode().split("=", 1) for entry in told if entry)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_value_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    text, left_out = written(**{name: HOSTILE[name]})
    assert left_out == []
    assert as_sh_reads(text, tmp_path)[name] == HOSTILE[name]
    assert read_environment(text) == {name: HOSTILE[name]}


def test_many_lines_make_no_variables_of_their_own(tmp_path: Path) -> None:
    text, _ = written(**HOSTILE)
    assert "EVIL" not in as_sh_reads(text, tmp_path)
    assert read_environment(text) == HOSTILE


def test_what_is_no_text_is_left_out_and_named() -> None:
    entries = [b"BINARY=\xff\xfe", b"BELL=a\x07", b"RETURN=a\r", b"PATH=/opt/venv/bin"]
    assert environment_file.lines(entries) == ('PATH="/opt/venv/bin"\n', ["BELL", "BINARY", "RETURN"])


def test_functions_and_what_belongs_to_a_login_are_left_out_in_silence() -> None:
    entries = [
        b"BASH_FUNC_activate%%=() {  echo\n}",
        b"PWD=/root",
        b"HOME=/root",
        b"SHLVL=1",
        b"A B=1",
        b"VIRTUAL_ENV=/v",
    ]
    assert environment_file.lines(entries) == ('VIRTUAL_ENV="/v"\n', [])


def test_it_runs_as_a_program_on_what_activate_writes() -> None:
    entries = ["/opt/venv/bin/python", "/opt/venv/bin/ray", "PYTHONPATH=/a:/b", "RETURN=a\r", ""]
    done = subprocess.run(
        [sys.executable, "-I", environment_file.__file__],
        input="\0".join(entries).encode(),
        capture_output=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout == b'PYTHONPATH="/a:/b"\n'
    assert done.stderr == b"variables that are not text are left out: RETURN\n"
