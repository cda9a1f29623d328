"""The internal HTTP API of verdicts on objects, for the gateway (libs/clients port Verdicts)."""

from __future__ import annotations

import asyncio

from aiohttp import web
from kubevnfm_clients.multicloud.verdicts import SeenObject, Verdicts
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.adapters.internal_http import answer


def verdict_routes(verdicts: Verdicts) -> web.RouteTableDef:
    """Return the route of verdicts."""
    routes = web.RouteTableDef()

    @routes.post("/internal/v1/verdicts")
    async def judge(request: web.Request) -> web.Response:
        raw = await request.read()
        # In a thread: an object may have more than a megabyte.
        seen = await asyncio.to_thread(lambda: SeenObject.model_validate(read_foreign(raw)))
        return answer(await verdicts.judge(seen))

    return routes
