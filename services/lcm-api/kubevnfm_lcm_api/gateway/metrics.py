"""``/kubevnfm/v1/metrics``: the metrics of this gateway, and of all services where they are one process."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from kubevnfm_clients.metrics import Metrics

from kubevnfm_lcm_api.gateway.openapi.routes import TAG
from kubevnfm_lcm_api.gateway.request_metrics import RequestMetrics
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def add_to(app: web.Application, *, own: RequestMetrics, others: Metrics | None) -> None:
    """Add the route; ``others``: those of the other services in this process, None if it has none."""

    async def show(_: web.Request) -> web.Response:
        text = own.text() + ("" if others is None else await others.text())
        return web.Response(text=text, headers={"Content-Type": _CONTENT_TYPE})

    shown = {200: Answer("The text format of Prometheus", media_types=("text/plain",))}
    summary = "Read the metrics, for Prometheus"
    # Prometheus prefers OpenMetrics, and takes this too.
    add_routes(app, [Route(TAG, "GET", "/kubevnfm/v1/metrics", show, summary, shown, checks_accept=False)])
