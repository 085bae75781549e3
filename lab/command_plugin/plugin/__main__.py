"""Starts the plugin: prints its port on standard output, serves until it is killed or its engine is gone."""

from __future__ import annotations

import asyncio
import signal
import sys

import grpc

from .operation import GRPC_OPTIONS, EngineLog
from .server import Provider


async def main(arguments: list[str]) -> None:
    """Serves the engine whose address is the first argument that is no option; without one, waits for `Attach`."""
    # At once and without a word, as a Go program ends: the engine interrupts its plugins when it is done with them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    log = EngineLog(addresses[0] if addresses else None)
    server = grpc.aio.server(options=GRPC_OPTIONS)
    server.add_generic_rpc_handlers((Provider(log).handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await log.gone()
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
