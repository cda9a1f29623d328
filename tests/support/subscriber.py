"""A subscriber to life-cycle notifications: a small HTTP server that keeps what it is told."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from patience import until


@dataclass(frozen=True)
class Told:
    """One notification as it came."""

    body: dict[str, Any]
    version: str
    user: str
    password: str


@dataclass
class Subscriber:
    """What was told, in order. ``refuses`` makes it answer 503 so many times first."""

    uri: str = ""
    told: list[Told] = field(default_factory=list)
    refuses: int = 0

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Subscriber]:
        """Yield a subscriber that answers."""
        subscriber = cls()
        app = web.Application()
        app.add_routes([web.get("/told", subscriber._test), web.post("/told", subscriber._take)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            host = os.environ.get("KUBEVNFM_E2E_CALLBACK_HOST", "127.0.0.1")  # ours, as the installation reaches it
            await web.TCPSite(runner, host, 0).start()
            subscriber.uri = f"http://{host}:{runner.addresses[0][1]}/told"
            yield subscriber
        finally:
            await runner.cleanup()

    def of(self, instance_id: str) -> list[dict[str, Any]]:
        """Return the bodies about one VNF instance."""
        return [each.body for each in self.told if each.body["vnfInstanceId"] == instance_id]

    async def has_heard(self, instance_id: str, count: int) -> list[dict[str, Any]]:
        """Wait for so many about an instance; return them."""

        async def enough() -> list[dict[str, Any]] | None:
            bodies = self.of(instance_id)
            return bodies if len(bodies) >= count else None

        return await until(enough, timeout_s=30)

    async def _test(self, _: web.Request) -> web.Response:
        return web.Response(status=204)

    async def _take(self, request: web.Request) -> web.Response:
        if self.refuses:
            self.refuses -= 1
            return web.Response(status=503)
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(credentials).decode().partition(":") if scheme == "Basic" else ("", "", "")
        self.told.append(Told(await request.json(), request.headers.get("Version", ""), user, password))
        return web.Response(status=204)
