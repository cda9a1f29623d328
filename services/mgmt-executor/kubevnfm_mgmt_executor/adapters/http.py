"""The internal HTTP API: ``/internal/v1/operations/{operation_id}/log`` and ``GET /internal/v1/playbook-program``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from aiohttp import web
from kubevnfm_clients.ports import NodeLogs
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.internal import internal_app

_LONGEST_WAIT_S: Final = 30.0


def internal_api(logs: NodeLogs, *, token: str, why_no_playbooks: Callable[[], str]) -> web.Application:
    """Return the application; ``why_no_playbooks``: "" if they can be run; everything under ``/internal/`` requires the bearer token."""

    async def log(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type, response.charset = "text/plain", "utf-8"
        # Streamed, because an operation runs many commands and each may have 256 kB of output.
        only = {name: request.query.get(name) for name in ("node", "task")}
        with suppress(ConnectionResetError):  # the caller went away
            await response.prepare(request)
            async for part in logs.log(request.match_info["operation_id"], **only):
                await response.write(part)
            await response.write_eof()
        return response

    async def following(request: web.Request) -> web.Response:
        asked = read_foreign(await request.read())
        only = {name: asked.get(name) for name in ("node", "task")}
        wait_s = min(float(asked["waitS"]), _LONGEST_WAIT_S)
        part = await logs.following(request.match_info["operation_id"], asked["place"], wait_s, **only)
        return web.json_response({"text": part.text.decode(), "place": part.place})

    async def playbook_program(_: web.Request) -> web.Response:
        return web.json_response({"whyMissing": why_no_playbooks()})

    routes = [
        web.get("/internal/v1/operations/{operation_id}/log", log),
        web.post("/internal/v1/operations/{operation_id}/log/following", following),
        web.get("/internal/v1/playbook-program", playbook_program),
    ]
    return internal_app(routes, token=token)
