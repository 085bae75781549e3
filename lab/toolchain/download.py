"""Official downloads, where the network has them.

A machine without the wider Internet must find that out in seconds, so one short question comes before each
download, and "no" is an answer, not an error. A download that began and broke is an error.
"""

from __future__ import annotations

import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path

ASK_SECONDS = 5.0
"""How long the question whether a download exists may take, in seconds."""

STALL_SECONDS = 60.0
"""How long a download may stand still, in seconds."""


def available(url: str) -> bool:
    """Whether a download can be had from here. False where its host is unknown, silent or refuses."""
    question = urllib.request.Request(url, method="HEAD")  # noqa: S310  (our own https addresses)
    try:
        with urllib.request.urlopen(question, timeout=ASK_SECONDS) as answer:  # noqa: S310
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def download(url: str, destination: Path) -> None:
    """Downloads to a file.

    Raises:
        OSError: it could not be downloaded whole; the message names the address.
    """
    try:
        with urllib.request.urlopen(url, timeout=STALL_SECONDS) as answer, destination.open("wb") as out:  # noqa: S310
            shutil.copyfileobj(answer, out)
            promised = answer.headers.get("Content-Length")
    except (OSError, http.client.HTTPException) as error:
        raise OSError(f"downloading {url} failed: {error}") from error
    got = destination.stat().st_size
    if promised is not None and got != int(promised):
        raise OSError(f"downloading {url} broke off after {got} of {promised} bytes; try again")
