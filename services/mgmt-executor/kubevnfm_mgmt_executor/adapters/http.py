"""The internal HTTP API: ``GET /internal/v1/operations/{operation_id}/log[?node=]``, and health."""

from __future__ import annotations

import hmac

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from kubevnfm_clients.ports import NodeLogs
from kubevnfm_kit.http import Ready, add_health


def internal_api(logs: NodeLogs, *, internal_token: str, ready: Ready) -> web.Application:
    """Return the application; everything under ``/internal/`` wants the bearer token."""
    app = web.Application(middlewares=[_bearer(internal_token)])
    add_health(app, ready)

    async def log(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type, response.charset = "text/plain", "utf-8"
        await response.prepare(request)
        async for part in logs.log(request.match_info["operation_id"], node=request.query.get("node")):
            await response.write(part)
        await response.write_eof()
        return response

    app.router.add_get("/internal/v1/operations/{operation_id}/log", log)
    return app


def _bearer(token: str) -> Middleware:
    expected = f"Bearer {token}".encode()

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        shown = request.headers.get("Authorization", "").encode()
        if request.path.startswith("/internal/") and not hmac.compare_digest(shown, expected):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return check
