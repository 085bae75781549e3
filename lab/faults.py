"""What can go wrong with a host, on purpose, and back again.

Every fault is real: a cable out, a process killed, a disk with no byte left. Each has its opposite, and none touches
anything but the host it is given.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lab import hosts, keys, network, world
from lab.errors import LabError
from lab.polling import wait_for
from lab.state import claimed
from lab.topology import LabHost
from lab.world import Lab

_FILLER = "/var/tmp/rce-filler"  # noqa: S108  # a path on the host, where only root of the lab writes
_TABLE = "rce_blocked_ports"
_OTHER_KEYS = "other_host_keys"


def link_down(lab: Lab, host: LabHost) -> None:
    """Pulls the host's cable: it sees no carrier, and nothing passes."""
    hosts.running_leader(lab.name, host.name)
    network.set_link(lab.name, host.name, up=False)


def link_up(lab: Lab, host: LabHost) -> None:
    """Plugs the cable in again."""
    hosts.running_leader(lab.name, host.name)
    network.set_link(lab.name, host.name, up=True)


def reboot(lab: Lab, host: LabHost) -> None:
    """Has the host's systemd reboot, or restarts a container, and waits until the operator can log in again.

    Raises:
        LabError: it did not come back.
    """
    old = hosts.running_leader(lab.name, host.name)
    hosts.ask_to_reboot(lab.files, lab.name, host)

    def fresh() -> int | None:
        pid = hosts.leader(lab.name, host.name)
        return pid if pid != old else None

    if wait_for(fresh, hosts.BOOT_LIMIT_S) is None:
        raise LabError(
            f"{host.name} did not reboot in {hosts.BOOT_LIMIT_S} s. {hosts.console_tail(lab.files, host.name)}"
        )
    runner = lab.state().processes[f"host/{host.name}"]
    hosts.wait_until_up(lab.files, lab.name, host, runner)
    world.wait_for_login(lab, host)


def stop_host(lab: Lab, host: LabHost) -> None:
    """Pulls the host's plug: everything on it ends at once; its disk stays."""
    with claimed(lab.name, lab.files.root):
        state = lab.state()
        lab.files.save(replace(state, stopped=tuple(sorted({*state.stopped, host.name}))))
        hosts.cut_power(lab.name, host.name)


def start_host(lab: Lab, host: LabHost) -> None:
    """Switches a host on again, and waits until the operator can log in.

    Raises:
        LabError: it is on, or does not come up.
    """
    with claimed(lab.name, lab.files.root):
        state = lab.state()
        if state.processes[f"host/{host.name}"].alive:
            raise LabError(f"{host.name} is on already")
        hosts.cut_power(lab.name, host.name)
        world.switch_on(lab, state, [host])


def kill_process(lab: Lab, host: LabHost, name: str, *, whole_command: bool, signal: str) -> None:
    """Sends a signal to processes of the host.

    Args:
        lab: which lab.
        host: whose processes.
        name: a process name, exactly; or, with `whole_command`, a pattern that the command line must contain.
        whole_command: which of the two.
        signal: its name, such as KILL or STOP.

    Raises:
        LabError: no process is so called.
    """
    # pgrep runs inside the host and sees the host's processes only.
    match = ["--full"] if whole_command else ["--exact"]
    done = hosts.run(lab.name, host.name, "pkill", f"--signal={signal}", *match, "--", name)
    if done.returncode == 1:
        raise LabError(f"no process on {host.name} is called {name}")
    if done.returncode != 0:
        raise LabError(f"pkill failed on {host.name}: {done.stderr.strip()}")


def fill_disk(lab: Lab, host: LabHost, leave_mib: int) -> None:
    """Takes all space on the host's disk but the given rest. This machine's own disk is not filled.

    Args:
        lab: which lab.
        host: whose disk.
        leave_mib: how much stays free, in MiB.

    Raises:
        LabError: there is less free space than that.
    """
    size = _free_bytes(lab, host) - (leave_mib << 20)
    if size <= 0:
        raise LabError(f"{host.name} has less than {leave_mib} MiB free already")
    # Reserved, not written: the file system counts it as used, the sparse file below it does not grow. The last
    # blocks can't be had, as the file system needs some to note down the others; what matters is what is left.
    done = hosts.run(lab.name, host.name, "fallocate", "--length", str(size), _FILLER)
    if _free_bytes(lab, host) > leave_mib << 20:
        raise LabError(f"the disk of {host.name} can't be filled: {done.stderr.strip()}")


def unfill_disk(lab: Lab, host: LabHost) -> None:
    """Gives the space back."""
    hosts.must(lab.name, host.name, "rm", "-f", _FILLER)


def block_port(lab: Lab, host: LabHost, port: int, protocol: str) -> None:
    """Has the host drop what arrives for a port, on every device but loopback. A reboot lifts it.

    Args:
        lab: which lab.
        host: the host.
        port: destination port.
        protocol: `tcp` or `udp`.
    """
    rules = (
        f"add table inet {_TABLE}\n"
        f"add chain inet {_TABLE} input {{ type filter hook input priority -10; policy accept; }}\n"
        f"add set inet {_TABLE} ports {{ type inet_proto . inet_service; }}\n"
        f"flush chain inet {_TABLE} input\n"
        f'add rule inet {_TABLE} input iifname != "lo" meta l4proto . th dport @ports drop\n'
        f"add element inet {_TABLE} ports {{ {protocol} . {port} }}\n"
    )
    hosts.must(lab.name, host.name, "nft", "-f", "-", stdin=rules)


def unblock_port(lab: Lab, host: LabHost, port: int, protocol: str) -> None:
    """Lets it through again.

    Raises:
        LabError: it was not blocked.
    """
    element = f"{{ {protocol} . {port} }}"
    done = hosts.run(lab.name, host.name, "nft", "delete", "element", "inet", _TABLE, "ports", element)
    if done.returncode != 0:
        raise LabError(f"{protocol} port {port} is not blocked on {host.name}")


def wrong_host_key(lab: Lab, host: LabHost) -> None:
    """Gives the host's sshd other host keys than those in the inventory, as after a new installation."""
    for kind in keys.HOST_KEY_TYPES:
        private = other_host_key(lab, host, kind)
        keys.create(private, kind, f"other@{host.name}")
        _install_key(lab, host, private.read_text(), kind)
    _reload_sshd(lab, host)


def other_host_key(lab: Lab, host: LabHost, kind: str = "ed25519") -> Path:
    """The private key of that kind that `wrong_host_key` gives the host."""
    return lab.files.host(host.name) / _OTHER_KEYS / f"ssh_host_{kind}_key"


def right_host_key(lab: Lab, host: LabHost) -> None:
    """Gives the host's sshd the keys of the inventory again."""
    for kind in keys.HOST_KEY_TYPES:
        private = lab.files.host(host.name) / f"ssh_host_{kind}_key"
        _install_key(lab, host, private.read_text(), kind)
    _reload_sshd(lab, host)


def _free_bytes(lab: Lab, host: LabHost) -> int:
    return int(hosts.must(lab.name, host.name, "df", "--output=avail", "-B1", "/").split()[-1])


def _reload_sshd(lab: Lab, host: LabHost) -> None:
    if host.kind == "systemd":
        hosts.must(lab.name, host.name, "systemctl", "reload", "ssh.service")
    else:
        hosts.must(lab.name, host.name, "pkill", "--signal=HUP", "--oldest", "--exact", "sshd")


def _install_key(lab: Lab, host: LabHost, private: str, kind: str) -> None:
    path = f"/etc/ssh/ssh_host_{kind}_key"
    # The private key alone is what sshd reads; the public file follows from it.
    hosts.must(lab.name, host.name, "install", "-m", "0600", "/dev/stdin", path, stdin=private)
    hosts.must(lab.name, host.name, "sh", "-c", f"ssh-keygen -y -f {path} >{path}.pub")
