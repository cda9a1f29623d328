"""``/kubevnfm/v1/metrics``: the metrics of all services, where they are one process."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from kubevnfm_clients.metrics import Metrics

from kubevnfm_lcm_api.gateway.openapi.routes import TAG
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def add_to(app: web.Application, *, metrics: Metrics) -> None:
    """Add the route."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=await metrics.text(), headers={"Content-Type": _CONTENT_TYPE})

    shown = {200: Answer("The text format of Prometheus", media_types=("text/plain",))}
    summary = "Read the metrics, for Prometheus"
    # Prometheus prefers OpenMetrics, and takes this too.
    add_routes(app, [Route(TAG, "GET", "/kubevnfm/v1/metrics", show, summary, shown, checks_accept=False)])
