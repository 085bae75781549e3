"""What a failed command means and what to do about it, beside pulumi-command's own words.

The scripts explain what goes wrong on a host; this is for what goes wrong on the way there, where only the plugin
speaks. Nothing is retried here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import grpc
import pulumi

_NO_SUDO = (
    "lets nobody become root: its account may not use sudo without a password. Allow it with a line "
    "`<ssh.user> ALL=(ALL) NOPASSWD: ALL` in /etc/sudoers.d/, or log in as root (ssh.user)"
)

_MEANINGS = (
    (
        re.compile(r"host key mismatch", re.IGNORECASE),
        (
            "shows another host key than ssh.host_key. If the machine was set up anew, what Pulumi knows of it is "
            "gone: set lost: true on it and run pulumi up, then put its new key into ssh.host_key (print it there with "
            "`cat /etc/ssh/ssh_host_ed25519_key.pub`) and take lost away; if not, somebody may be in between"
        ),
    ),
    (
        # Behind a jump host, the plugin's retries hide the first and true reason.
        re.compile(r"handshake failed: EOF", re.IGNORECASE),
        (
            "is reached, but the SSH handshake fails. Most often it shows another host key than ssh.host_key: print "
            "it there with `cat /etc/ssh/ssh_host_ed25519_key.pub` and compare. If the machine was set up anew, what "
            "Pulumi knows of it is gone: set lost: true on it and run pulumi up, then put its new key into "
            "ssh.host_key and take lost away. If the keys are equal, check ssh.user, and that the SSH agent "
            "(`ssh-add -l`) or ssh.key_file holds a key of its authorized_keys, or that the secret of "
            "ssh.password_secret is right"
        ),
    ),
    (
        re.compile(r"unable to authenticate|permission denied|no supported methods remain", re.IGNORECASE),
        (
            "refuses the login, or its jump host does. Check ssh.user, and that the SSH agent (`ssh-add -l`) or "
            "ssh.key_file holds a key that is in its authorized_keys, or that the secret of ssh.password_secret is "
            "right"
        ),
    ),
    (
        re.compile(r"no such host|server misbehaving|name or service not known", re.IGNORECASE),
        ("has an address that can't be resolved. Correct ssh.address"),
    ),
    (
        re.compile(
            r"refused|timeout|timed out|deadline exceeded|no route|unreachable|connect failed|failed attempts",
            re.IGNORECASE,
        ),
        (
            "can't be reached. Check that it is on, that sshd runs, ssh.address and ssh.port, and the way there "
            "(firewall, VPN, ssh.jump)"
        ),
    ),
)


_OF_A_CREATED_ONE = (
    (
        re.compile(r"unable to authenticate|permission denied|no supported methods remain", re.IGNORECASE),
        (
            "refuses the login. Check that the SSH agent (`ssh-add -l`) or ssh.key_file holds the private half of "
            "cluster.aws.public_key (or key_name), and, with aws.ami, ssh.user"
        ),
    ),
    (
        re.compile(
            r"host key mismatch|handshake failed|refused|timeout|timed out|deadline exceeded|no route|unreachable"
            r"|connect failed|failed attempts",
            re.IGNORECASE,
        ),
        (
            "does not let Pulumi in. Either aws.ssh_from lacks the address that you come from, or its first boot is "
            "still going on or has failed: `aws ec2 get-console-output` shows it. Then run pulumi up again"
        ),
    ),
)
"""The same of a machine that this program creates: its host key and its address are right."""


def meaning(errors: list[str], *, created: bool = False) -> str | None:
    """What errors of pulumi-command say about the way to a host; None where a script has spoken.

    Args:
        errors: the newest first.
        created: whether this program creates the machine.
    """
    newest = errors[0] if errors else ""
    if "sudo: a password is required" in newest or "sudo: a terminal is required" in newest:
        return _NO_SUDO
    if "Process exited" in newest or "exit status" in newest:
        return None
    known = _OF_A_CREATED_ONE if created else _MEANINGS
    return next((text for pattern, text in known if pattern.search(newest)), None)


_OVER_OVERLAY = (
    " It is reached over the overlay: if it has left that, as it does when networkSecret changes, its owner runs the "
    "join script again. To get the script without it, take away joined: true for one update"
)


@dataclass(frozen=True)
class Reached:
    """How a host is reached, as its failed commands are explained."""

    host: str
    endpoint: str
    over_overlay: bool
    created: bool
    """Whether this program creates the machine."""


class Explanations:
    """One error hook for all commands, which names the host and the fix.

    A hook of its own for each command is a call of the engine more, and with Pulumi 3.274.1 a gRPC server more: the SDK
    begins another one for each hook that is made before the first server runs.
    """

    def __init__(self) -> None:
        self._reached: dict[str, Reached] = {}
        self._hook = pulumi.ErrorHook("explain", self._explain)

    def of(self, command: str, reached: Reached) -> pulumi.ResourceHookBinding:
        """The hook, for one more command.

        Args:
            command: name of the command's resource.
            reached: how its host is reached.
        """
        self._reached[command] = reached
        return pulumi.ResourceHookBinding(on_error=[self._hook])

    def _explain(self, args: pulumi.ErrorHookArgs) -> bool:
        reached = self._reached[args.name]
        text = meaning(args.errors, created=reached.created)
        if text is not None:
            hint = f"{_OVER_OVERLAY}." if reached.over_overlay and "can't be reached" in text else ""
            pulumi.log.error(f"{reached.host} ({reached.endpoint}) {text}.{hint}")
        return False


_LAST_WORDS = ("Program failed with an unhandled exception", "Resource monitor has terminated")
"""What the Python host has the engine show of a program that ended."""


class _Error:
    """Pulumi's own `log.error`, but for the last words of a program whose engine is gone."""

    def __init__(self, usual: Callable[..., None]) -> None:
        self._usual = usual

    def __call__(self, msg: str, *more: Any, **named: Any) -> None:  # noqa: ANN401  # as the SDK has it
        # They are said in the handler of the exception that ended it.
        if not (msg.startswith(_LAST_WORDS) and _engine_is_gone(sys.exception())):
            self._usual(msg, *more, **named)


def say_nothing_after_the_engine() -> None:
    """Keeps the Python host quiet once the engine has ended an update.

    When a resource fails, the engine shows why and shuts down; the host then often finds it gone, or its call
    cancelled, in the middle of a call, and prints a traceback of its own or has the engine show it (seen with Pulumi
    3.274.1 in one failed update of four). Everything else is printed as before, and the exit code stays.
    """
    usual = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if _engine_is_gone(error):
            sys.unraisablehook = lambda _: None  # what is left unfinished complains, too
        else:
            usual(kind, error, traceback)

    sys.excepthook = hook
    if not isinstance(pulumi.log.error, _Error):
        pulumi.log.error = _Error(pulumi.log.error)


def _engine_is_gone(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        if isinstance(error, grpc.Call) and error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
            return True
        error = error.__cause__ or error.__context__
    return False
