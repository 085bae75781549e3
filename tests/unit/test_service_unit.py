"""What a supervised process does with a unit, told by what it reads from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components.packing import SCRIPTS
from components.scripts.service_unit import Command, read_environment, read_unit

MINIMAL = "[Service]\nExecStart=/bin/true\n"


class TestUnits:
    """The units that systemd runs are those that a supervisor runs."""

    @pytest.mark.parametrize("unit", ["rlinf-easytier.service", "rlinf-ray.service", "rlinf-echo.service"])
    def test_every_unit_of_a_host_without_systemd_can_be_read(self, unit: str) -> None:
        assert read_unit((SCRIPTS / unit).read_text()).restart_seconds >= 1

    def test_easytier_is_restricted_as_under_systemd(self) -> None:
        unit = read_unit((SCRIPTS / "rlinf-easytier.service").read_text())
        assert (unit.user, unit.no_new_privileges, unit.stop_seconds, unit.main_first) == ("root", True, 5, False)
        assert unit.capabilities == {10, 12, 13}
        assert unit.environment_files == ("/etc/rlinf-cloud-edge/easytier.env",)
        assert unit.start.argv[0] == "/opt/rlinf-cloud-edge/easytier/easytier-core"

    def test_ray_runs_as_the_login_user_after_what_root_does_for_it(self) -> None:
        unit = read_unit((SCRIPTS / "rlinf-ray.service").read_text().replace("@USER@", "robot"))
        assert (unit.user, unit.at_home, unit.open_files, unit.capabilities) == ("robot", True, 1048576, None)
        assert [command.privileged for command in unit.start_pre] == [True, True]
        assert unit.start == Command(("/opt/rlinf-cloud-edge/libexec/run-ray.sh",), privileged=False)
        assert unit.main_first

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[Service]\nUser=nobody\n", "no ExecStart"),
            (f"{MINIMAL}PrivateTmp=yes\nMemoryMax=1G\n", "settings that are not known here: MemoryMax, PrivateTmp"),
            (f"{MINIMAL}CapabilityBoundingSet=CAP_SYS_ADMIN\n", "the capability CAP_SYS_ADMIN is not known here"),
            (f"{MINIMAL}KillMode=process\n", "KillMode=process is not known here"),
            ("[Service]\nExecStart=true\n", "give an absolute path"),
            ("[Service]\nExecStart=-/bin/true\n", "give an absolute path"),
        ],
    )
    def test_what_it_can_not_do_is_refused_and_not_passed_over(self, text: str, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            read_unit(text)


class TestEnvironmentFiles:
    """Environment files are read as systemd reads them."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("NAME=plain", "plain"),
            ("NAME=", ""),
            ("  NAME= two words \t", "two words"),
            ('NAME="kept  as it is "', "kept  as it is "),
            ("NAME='single \\ \"quoted\" $HOME'", 'single \\ "quoted" $HOME'),
            (r'NAME="\"\\\$\` \n"', r'"\$` \n'),
            (r"NAME=a\ b\"c", 'a b"c'),
            ('NAME="over\ntwo lines"', "over\ntwo lines"),
            ("NAME=joined \\\nline", "joined line"),
            ("# NAME=comment\n; NAME=comment\nNAME=value", "value"),
            ("NAME=first\nNAME=last", "last"),
            ("NAME=a=b", "a=b"),
            ("NAME=ünï", "ünï"),
        ],
    )
    def test_a_value(self, text: str, value: str) -> None:
        assert read_environment(f"{text}\nOTHER=1\n") == {"NAME": value, "OTHER": "1"}

    @pytest.mark.parametrize(
        "value", ["", "plain", "two  words ", "a\"b'c", "back\\slash\\", "$HOME `id` $(id)", "#;=", "ünï\t"]
    )
    def test_what_the_scripts_write_is_read_back_as_it_was_also_by_a_shell(self, value: str, tmp_path: Path) -> None:
        script = 'here=$1; . "$1/lib.sh"; printf "NAME=%s\\n" "$(quoted "$2")" >"$3"; . "$3"; printf "%s" "$NAME"'
        file = tmp_path / "environment"
        by_shell = subprocess.run(
            ["bash", "-euc", script, "bash", str(SCRIPTS), value, str(file)], capture_output=True, text=True, check=True
        ).stdout
        assert (by_shell, read_environment(file.read_text())) == (value, {"NAME": value})
