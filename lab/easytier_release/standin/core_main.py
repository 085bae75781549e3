"""The command `easytier-core`: options, RPC portal, node, in upstream's order."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import EASYTIER_VERSION, rpc, settings
from . import options as command_line
from .extension import CoreUnavailableError, load
from .log import Log
from .node import NodeError, Runner, leave


def main(arguments: Sequence[str], archive: Path) -> int:
    """Runs a node until it ends.

    Args:
        arguments: the command line, without the program's name.
        archive: the executable, which holds the compiled core.

    Returns:
        0 after a signal or a good --check-config, 1 after a fault.

    Raises:
        SystemExit: after --help, --version and faults of usage.
    """
    version = command_line.Version("easytier-core", EASYTIER_VERSION)
    environment = {_utf8(name): _utf8(value) for name, value in os.environb.items()}
    options = command_line.parse([_utf8(os.fsencode(text)) for text in arguments], environment, version)
    log = Log(options.console_log_level)
    log.hide(str(options.network.get("network_secret", "")))
    try:
        if options.check_config:
            settings.configuration(options, environment)
            return 0
        _run(options, environment, archive, log)
    except (settings.ConfigurationError, rpc.PortalError, CoreUnavailableError, NodeError) as error:
        log("error", str(error))
        return 1
    return 0


def _utf8(text: bytes) -> str:
    """Reads text as UTF-8 whatever the locale, as upstream does."""
    return text.decode("utf-8", "surrogateescape")


def _run(options: command_line.Options, environment: Mapping[str, str], archive: Path, log: Log) -> None:
    runner: Runner | None = None

    def answer(question: str) -> object:
        if runner is None:
            raise LookupError("no running instance")
        return runner.answer(question)

    portal = rpc.serve(options.rpc_portal, options.rpc_portal_whitelist, answer)
    config = settings.configuration(options, environment)
    log.hide(settings.secret(config))
    log("info", f"a stand-in for upstream's easytier-core {EASYTIER_VERSION}, RPC portal on {portal.address}")
    runner = Runner(load(archive), config, log)
    log("warn", f"{runner.run()} received, exiting...")


def run() -> None:
    """The entry point of the executable."""
    leave(main(sys.argv[1:], Path(sys.argv[0])))
