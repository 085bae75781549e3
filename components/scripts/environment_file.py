"""Writes variables as an environment file that systemd, sh and supervise.py read alike. For Python 3.8 and up.

Standard input holds what `activate` of activation.sh has written: two paths, then `NAME=value`, each ended by NUL. A
variable that such a file can't hold is left out and named on standard error.
"""

from __future__ import annotations

import re
import sys

# What belongs to a login or a process, and to no other.
_NOT_THEIRS = {
    *(
        "_",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "MAIL",
        "TERM",
        "PS1",
        "BASHOPTS",
        "SHELLOPTS",
    ),
    *("BASH_ENV", "ENV", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "DBUS_SESSION_BUS_ADDRESS"),
}
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def lines(entries: list[bytes]) -> tuple[str, list[str]]:
    """The file's text, and the names of the variables that it can't hold.

    Args:
        entries: `NAME=value`, as a process has them.
    """
    written: dict[str, str] = {}
    left_out: list[str] = []
    for entry in entries:
        name, _, value = entry.partition(b"=")
        # bash exports functions under names that are none.
        if not _NAME.fullmatch(name) or name.decode() in _NOT_THEIRS:
            continue
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = "\x00"
        if _CONTROL.search(text):
            left_out.append(name.decode())
        else:
            written[name.decode()] = text
    return "".join(f"{name}={quoted(written[name])}\n" for name in sorted(written)), sorted(left_out)


def quoted(value: str) -> str:
    """A double-quoted string that systemd and sh read back as it was."""
    return '"' + re.sub(r'(["\\$`])', r"\\\1", value) + '"'


def main() -> None:
    """Reads, writes, and says what is left out."""
    text, left_out = lines(sys.stdin.buffer.read().split(b"\0")[2:])
    sys.stdout.buffer.write(text.encode())
    if left_out:
        print("variables that are not text are left out:", *left_out, file=sys.stderr)


if __name__ == "__main__":
    main()
