"""The internal HTTP API of the program that renders charts, for the gateway (libs/clients port ChartPrograms)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.charts import ChartPrograms


def chart_routes(programs: ChartPrograms) -> web.RouteTableDef:
    """Return the route of the program."""
    routes = web.RouteTableDef()

    @routes.get("/internal/v1/chart-program")
    async def show(_: web.Request) -> web.Response:
        return web.json_response({"whyMissing": await programs.why_missing()})

    return routes
