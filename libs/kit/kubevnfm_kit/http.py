"""Serving HTTP: one aiohttp application on one address, with health endpoints."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Ready = Callable[[], Awaitable[bool]]


def add_health(app: web.Application, ready: Ready) -> None:
    """Add ``GET /health/live`` (200 while the loop turns) and ``GET /health/ready`` (200, or 503 while not ready)."""

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def readiness(_: web.Request) -> web.Response:
        is_ready = await ready()
        return web.json_response({"status": "ready" if is_ready else "not ready"}, status=200 if is_ready else 503)

    app.router.add_get("/health/live", live)
    app.router.add_get("/health/ready", readiness)


@asynccontextmanager
async def serving(
    app: web.Application, *, host: str, port: int, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve the application; yield the port (the one the system chose when ``port`` is 0); leaving closes it."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        await site.start()
        address = runner.addresses[0]
        yield int(address[1])
    finally:
        await runner.cleanup()
