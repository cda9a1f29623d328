"""Measures the time from a state change to the subscriber's callback."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from aiohttp import web


@dataclass
class Callbacks:
    """A subscriber that measures the delay of each notification of a state."""

    uri: str = ""
    taken_ms: list[float] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer the callback test, and record the delay of each notification."""
        arrived = time.time()
        if request.method == "POST":
            notification = await request.json()
            if "operationState" in notification:  # its timeStamp is the state's; in others it is the time of sending
                since = datetime.fromisoformat(notification["timeStamp"]).timestamp()
                self.taken_ms.append((arrived - since) * 1000)
        return web.Response(status=204)


@asynccontextmanager
async def subscriber() -> AsyncIterator[Callbacks]:
    """Yield a subscriber that listens on loopback."""
    callbacks = Callbacks()
    app = web.Application()
    app.router.add_route("*", "/callback", callbacks.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        callbacks.uri = f"http://127.0.0.1:{runner.addresses[0][1]}/callback"
        yield callbacks
    finally:
        await runner.cleanup()
