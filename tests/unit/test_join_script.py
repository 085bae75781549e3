"""A join script is one file of bash, in which settings are data, whatever they hold."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components.join import render
from components.packing import SCRIPTS, packed_for_owners

FACTS = {
    "NAME": "edge-2",
    "KIND": "overlay",
    "NETWORK": "rlinf",
    "DEVICE": "et0",
    "OVERLAY_IP": "10.10.0.12",
    "RANK": "",
    "LOGIN": "robot",
    "SSH_PORT": "22",
}
HOSTILE = "$(touch /tmp/owned) `id` 'single' \"double\" \\ ${HOME} !! \t * END_OF_DATA #"


def script(folder: Path, steps: dict[str, dict[str, str]] | None = None, **facts: str) -> Path:
    """A join script in a file."""
    file = folder / "join.sh"
    file.write_text(render({**FACTS, **facts}, steps or {"check": {}, "prepare": {}, "overlay": {}, "ray": {}}))
    return file


def told(file: Path, code: str) -> str:
    """What bash prints that has read a join script up to its last line, and then runs some code."""
    text = file.read_text().removesuffix('main "$@"\n')
    return subprocess.run(["bash", "-s"], input=f"{text}\n{code}\n", capture_output=True, text=True, check=True).stdout


def test_hostile_settings_reach_the_scripts_as_they_are(tmp_path: Path) -> None:
    settings = {"NETWORK_SECRET": HOSTILE, "DEVICE": "END_OF_DATA", "PEERS": ""}
    file = script(tmp_path, {"prepare": {}, "overlay": settings, "ray": {}})
    assert told(file, "settings_overlay") == f"DEVICE=END_OF_DATA\nNETWORK_SECRET={HOSTILE}\nPEERS=\n"
    assert told(file, "settings_prepare") == ""


def test_hostile_facts_are_texts(tmp_path: Path) -> None:
    assert told(script(tmp_path, NETWORK=HOSTILE), 'printf %s "$NETWORK"') == HOSTILE


def test_a_setting_of_two_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NETWORK_SECRET is not one line"):
        script(tmp_path, {"overlay": {"NETWORK_SECRET": "a\nEND_OF_DATA\nid"}})


def test_it_holds_all_scripts_but_those_of_heads(tmp_path: Path) -> None:
    assert told(script(tmp_path), "scripts") == packed_for_owners()
    assert told(script(tmp_path), "scripts | base64 -d | tar -tz | sort").split() == sorted(
        path.name
        for path in SCRIPTS.iterdir()
        if path.is_file() and path.name not in ("enter.sh", "join.sh", "gate.py", "gate.sh", "ray_nodes.py")
    )


def test_the_same_settings_make_the_same_file(tmp_path: Path) -> None:
    assert script(tmp_path).read_text() == script(tmp_path).read_text()


def test_the_account_of_ray_is_that_of_sudo_unless_it_is_set(tmp_path: Path) -> None:
    file = script(tmp_path, KIND="script", RANK="3")
    for given, sudo, account in (
        ("", "SUDO_USER=robot", "robot"),
        ("ray", "SUDO_USER=robot", "ray"),
        ("", ":", "root"),
    ):
        code = f"unset SUDO_USER; {sudo}; printf 'RAY_USER={given}\\nRANK=3\\n' | with_account"
        assert told(file, code) == f"RAY_USER={account}\nRANK=3\n"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--dwon"], 2, "edge-2: --dwon is not known. Run it with nothing, --status, --down or --help.\n"),
        (["--down", "--help"], 1, "edge-2: one option at most; see --help\n"),
    ],
)
def test_unknown_options_are_refused_before_anything_is_done(
    tmp_path: Path, options: list[str], code: int, message: str
) -> None:
    done = subprocess.run(["bash", script(tmp_path), *options], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, message)


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ({"KIND": "overlay"}, "Its operator then logs in over that network, as robot, and does the rest."),
        ({"KIND": "script", "RANK": "3"}, "It then runs Ray, rank 3. Nobody logs in."),
        ({"KIND": "script"}, "It runs no Ray for now. Nobody logs in."),
    ],
)
def test_help_says_what_it_will_do(tmp_path: Path, facts: dict[str, str], what: str) -> None:
    done = subprocess.run(
        ["bash", script(tmp_path, None, **facts), "--help"], capture_output=True, text=True, check=True
    )
    assert f"the host edge-2 of the network rlinf. {what}" in done.stdout
