"""The process of a lab's AWS world: `python -m lab.aws_world.server LAB FOLDER IMAGE SHARED`, as the operator."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from lab import topology
from lab.aws_world.account import Account
from lab.aws_world.reconciler import Reconciler
from lab.state import LabFiles


def main(lab: str, folder: str, image: str, shared: str) -> None:
    """Serves the account and keeps its hosts, until it is killed."""
    reconciler = Reconciler(LabFiles(Path(folder)), lab, Path(image), Path(shared))
    account = Account("127.0.0.1", topology.AWS_PORT, topology.AWS_ADDRESSES, reconciler.wake)
    threading.Thread(target=reconciler.run, daemon=True).start()
    account.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
