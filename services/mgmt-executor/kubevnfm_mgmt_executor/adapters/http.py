"""The internal HTTP API: ``GET /internal/v1/operations/{operation_id}/log[?node=]``."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.ports import NodeLogs
from kubevnfm_kit.internal import internal_app


def internal_api(logs: NodeLogs, *, token: str) -> web.Application:
    """Return the application; everything under ``/internal/`` requires the bearer token."""

    async def log(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type, response.charset = "text/plain", "utf-8"
        # Streamed, because an operation runs many commands and each may have 256 kB of output.
        await response.prepare(request)
        async for part in logs.log(request.match_info["operation_id"], node=request.query.get("node")):
            await response.write(part)
        await response.write_eof()
        return response

    return internal_app([web.get("/internal/v1/operations/{operation_id}/log", log)], token=token)
