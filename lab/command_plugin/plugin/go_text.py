"""Go's ways of writing things, where the original's messages contain them."""

from __future__ import annotations

import os

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """`text` as Go's `%q` writes it."""
    return '"' + "".join(_quoted_character(character) for character in text) + '"'


def endpoint(host: str, port: int) -> str:
    """Host and port in one, IPv6 addresses in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def error_text(error: OSError) -> str:
    """The operating system's name of the error, in lower case as Go has it."""
    if error.errno is None:
        return str(error)
    text = os.strerror(error.errno)
    return text[:1].lower() + text[1:]


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
