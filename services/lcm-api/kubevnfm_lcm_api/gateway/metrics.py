"""``/kubevnfm/v1/metrics``: the metrics of this process, so those of all services where they are one process."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_kit.metrics import Metrics

from kubevnfm_lcm_api.gateway.openapi.routes import TAG
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes


def add_to(app: web.Application, *, metrics: Metrics) -> None:
    """Add the route."""
    text = "OpenMetrics if Accept has it, else the text format of Prometheus"
    shown = {200: Answer(text, media_types=("text/plain", "application/openmetrics-text"))}
    summary = "Read the metrics, for Prometheus"
    path = "/kubevnfm/v1/metrics"
    # Prometheus accepts versions of both formats that are not served.
    add_routes(app, [Route(TAG, "GET", path, metrics.answer, summary, shown, checks_accept=False)])
