"""The one kind of error that the lab's commands report without a traceback."""

from __future__ import annotations


class LabError(Exception):
    """Something a person can act on: the message says what is wrong, with what, and what to do."""
