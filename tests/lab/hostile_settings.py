"""Texts that a shell, a unit file, TOML, YAML or an environment file could take for more than text."""

from __future__ import annotations

OWNED = "/tmp/owned"
VALUES = (
    f"$(touch {OWNED})",
    f"`touch {OWNED}`",
    f"; touch {OWNED} #",
    f"'; touch {OWNED}; '",
    f'"; touch {OWNED}; "',
    f"| touch {OWNED} &",
    f"EOF touch {OWNED}",
    "${HOME} $HOME $$ $0 %h %n %% %s",
    "back\\slash \\n \\t \\",
    "'single' \"double\" \"'both'\"",
    " spaces at both ends ",
    "a=b=c",
    "# no comment",
    "~ * ? [a-z] {a,b} !x",
    "-n",
    "",
    "漢字 ü 🤖",
    "long " * 800,
)


def variables() -> dict[str, str]:
    """A variable for each value."""
    return {f"HOSTILE_{index}": value for index, value in enumerate(VALUES)}
