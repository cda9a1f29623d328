"""The internal HTTP API of dry runs and taken places, for the gateway (libs/clients port DryRuns)."""

from __future__ import annotations

import asyncio

from aiohttp import web
from kubevnfm_clients.multicloud.dry_runs import DryRunOrder, DryRuns, PlacedOrder
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.adapters.internal_http import answer


def dry_run_routes(dry_runs: DryRuns) -> web.RouteTableDef:
    """Return the routes of dry runs."""
    routes = web.RouteTableDef()

    @routes.post("/internal/v1/dry-runs")
    async def run(request: web.Request) -> web.Response:
        raw = await request.read()
        # In threads: an order and a report may have megabytes.
        order = await asyncio.to_thread(lambda: DryRunOrder.model_validate(read_foreign(raw)))
        report = await dry_runs.run(order)
        text = await asyncio.to_thread(report.model_dump_json, by_alias=True, exclude_unset=True, exclude_none=True)
        return web.Response(text=text, content_type="application/json")

    @routes.post("/internal/v1/taken-places")
    async def taken_places(request: web.Request) -> web.Response:
        raw = await request.read()
        order = await asyncio.to_thread(lambda: PlacedOrder.model_validate(read_foreign(raw)))
        return answer(await dry_runs.taken_places(order))

    return routes
