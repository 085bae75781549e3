"""How many accelerators a host has, against `gpus`: the logic of accelerators.sh, by bash itself.

nvidia-smi and the kernel's folders are stand-ins here: a script that prints what the real one prints on a host with
GPUs, and files as Linux has them. What the real ones print was taken from their documentation.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "components" / "scripts" / "accelerators.sh"
CHECK = """
set -euo pipefail
HOST=edge-1
fault() { printf 'fault: %s\\n' "$*"; }
say() { printf 'say: %s\\n' "$*"; }
. "$1"
accelerators_proc=$2/proc accelerators_sys=$2/sys accelerators_dev=$2/dev
PATH=$2/bin:/usr/bin:/bin
check_accelerators "$3"
"""


@dataclass(frozen=True)
class HostWith:
    """A host, as far as accelerators show on it."""

    root: Path

    def nvidia_smi(self, text: str, status: int = 0) -> None:
        """It prints this for `-L`."""
        program = self.root / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n[ \"$*\" = -L ] || exit 2\ncat <<'END'\n{text}\nEND\nexit {status}\n")
        program.chmod(0o755)

    def file(self, path: str, text: str = "") -> None:
        """It has this file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def pci(self, slot: str, vendor: str, kind: str) -> None:
        """It has this device on the PCI bus."""
        self.file(f"sys/bus/pci/devices/{slot}/vendor", vendor)
        self.file(f"sys/bus/pci/devices/{slot}/class", kind)

    def checked(self, gpus: str) -> str:
        """What the check says of it."""
        command = ["bash", "-c", CHECK, "check", str(SCRIPT), str(self.root), gpus]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def listing(count: int) -> str:
    """What `nvidia-smi -L` prints on a host with that many GPUs, one of them split (MIG)."""
    lines = [f"GPU {index}: NVIDIA L40S (UUID: GPU-0c1e52c0-5d1c-4bd1-8a42-{index:012})" for index in range(count)]
    return "\n".join([*lines, "  MIG 1g.5gb      Device  0: (UUID: MIG-8a42)"])


@pytest.fixture
def host(tmp_path: Path) -> HostWith:
    return HostWith(tmp_path)


class TestNvidia:
    """nvidia-smi finds what RLinf finds."""

    def test_the_number_of_the_settings_passes(self, host: HostWith) -> None:
        host.nvidia_smi(listing(4))
        assert host.checked("4") == ""

    def test_fewer_are_a_fault(self, host: HostWith) -> None:
        host.nvidia_smi(listing(2))
        assert host.checked("4").startswith(
            "fault: the settings say gpus: 4, and nvidia-smi -L lists only 2; write gpus: 2"
        )

    def test_more_are_a_fault_since_rlinf_would_place_on_them(self, host: HostWith) -> None:
        host.nvidia_smi(listing(8))
        assert "gpus: 4, and nvidia-smi -L lists 8; RLinf would place on all of them. Write gpus: 8" in host.checked(
            "4"
        )
        assert "gpus: 0, and nvidia-smi -L lists 8" in host.checked("0")

    def test_some_that_the_settings_are_silent_about_are_a_warning(self, host: HostWith) -> None:
        host.nvidia_smi(listing(1))
        assert host.checked("").startswith("say: edge-1: warning: nvidia-smi -L lists 1 accelerators")

    def test_a_driver_that_does_not_answer_is_quoted(self, host: HostWith) -> None:
        host.nvidia_smi("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54", 18)
        told = host.checked("4")
        assert "none can be used: nvidia-smi -L fails and says: Failed to initialize NVML: Driver/library" in told
        assert "550.54" not in told

    def test_a_kernel_driver_without_its_programs(self, host: HostWith) -> None:
        host.file("proc/driver/nvidia/gpus/0000:01:00.0/information")
        assert "nvidia-smi is missing; install the driver's programs" in host.checked("1")

    def test_devices_without_a_driver(self, host: HostWith) -> None:
        host.pci("0000:01:00.0", "0x10de", "0x030200")
        host.pci("0000:01:00.1", "0x10de", "0x040300")  # its sound
        assert "it has 1 NVIDIA devices and no driver for them; install NVIDIA's driver" in host.checked("1")


class TestOthers:
    """AMD's and Ascend's drivers show their devices in the kernel's folders."""

    def test_amd_gpus_are_counted_without_the_processors(self, host: HostWith) -> None:
        host.file("dev/kfd")
        for node, gpu in enumerate(("0", "51110", "4098")):
            host.file(f"sys/class/kfd/kfd/topology/nodes/{node}/gpu_id", gpu)
        assert host.checked("2") == ""
        assert "AMD's driver has only 2" in host.checked("3")

    def test_amd_gpus_that_a_container_does_not_see(self, host: HostWith) -> None:
        host.file("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51110")
        assert "/dev/kfd is missing; start the container with --device /dev/kfd" in host.checked("1")

    def test_ascend_devices_are_counted(self, host: HostWith) -> None:
        for name in ("davinci0", "davinci1", "davinci_manager"):
            host.file(f"dev/{name}")
        assert host.checked("2") == ""


class TestNone:
    """Most hosts have no accelerator, and nothing is said of that."""

    @pytest.mark.parametrize("gpus", ["", "0"])
    def test_none_where_none_are_wanted_passes(self, host: HostWith, gpus: str) -> None:
        assert host.checked(gpus) == ""

    def test_none_where_some_are_wanted(self, host: HostWith) -> None:
        assert host.checked("4").startswith("fault: the settings say gpus: 4, and no accelerator is found")
