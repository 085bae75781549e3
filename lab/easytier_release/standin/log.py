"""The console log: warnings and errors on standard error, the rest on standard output, as upstream.

It never writes the network secret, not even inside a message of the core that quotes the configuration.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime

from .options import LOG_LEVELS


class Log:
    """Writes lines of at least one level of importance."""

    def __init__(self, level: str) -> None:
        """Starts a log.

        Args:
            level: the least important level that is written, one of `LOG_LEVELS`; `off` for none.
        """
        self._limit = LOG_LEVELS.index(level)
        self._secrets: list[str] = []

    def hide(self, secret: str) -> None:
        """Replaces a secret, plain or quoted, by asterisks in all that is written from now on."""
        self._secrets = [form for form in (json.dumps(secret, ensure_ascii=False)[1:-1], secret) if form]

    def __call__(self, level: str, text: str) -> None:
        """Writes one line, if its level is important enough."""
        if LOG_LEVELS.index(level) > self._limit:
            return
        for secret in self._secrets:
            text = text.replace(secret, "***")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = f"{now} {level.upper():>5} easytier: {text}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):  # whoever read the log is gone: no reason for the network to stop
            os.write(2 if level in {"error", "warn"} else 1, line)
