"""How long it takes from a state change to the subscriber's callback."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from aiohttp import web


@dataclass
class Callbacks:
    """A subscriber that notes when it was told of a state, and since when that is true."""

    uri: str = ""
    taken_ms: list[float] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """Take the callback test, and notifications."""
        arrived = time.time()
        if request.method == "POST":
            told = await request.json()
            if "operationState" in told:  # its time is the state's; others tell when they were sent
                since = datetime.fromisoformat(told["timeStamp"]).timestamp()
                self.taken_ms.append((arrived - since) * 1000)
        return web.Response(status=204)


@asynccontextmanager
async def subscriber() -> AsyncIterator[Callbacks]:
    """Yield it, listening on loopback."""
    callbacks = Callbacks()
    app = web.Application()
    app.router.add_route("*", "/told", callbacks.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        callbacks.uri = f"http://127.0.0.1:{runner.addresses[0][1]}/told"
        yield callbacks
    finally:
        await runner.cleanup()
