"""Starts a plugin: prints its port on standard output, serves until it is killed or its engine is gone."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import grpc

from .operation import GRPC_OPTIONS, EngineLog

if TYPE_CHECKING:
    from .service import Service


def main(make: Callable[[EngineLog], Service]) -> None:
    """Serves the engine whose address is this process's first argument that is no option; without one, any that asks.

    Args:
        make: makes the provider, given the engine's log.
    """
    asyncio.run(_serve(make, sys.argv[1:]))


async def _serve(make: Callable[[EngineLog], Service], arguments: Sequence[str]) -> None:
    # At once and without a word, as a Go program ends: the engine interrupts its plugins when it is done with them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    log = EngineLog(addresses[0] if addresses else None)
    server = grpc.aio.server(options=GRPC_OPTIONS)
    server.add_generic_rpc_handlers((make(log).handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await log.gone()
    await server.stop(None)
