"""Counts the requests to this gateway, and measures its process, in the text format of Prometheus."""

from __future__ import annotations

import asyncio
import time
from typing import Final, NoReturn

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware
from kubevnfm_access.middleware import Handler
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

_REQUEST_BUCKETS_S: Final = (0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0)
_LAG_BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
_LAG_EVERY_S: Final = 0.5
_METHODS: Final = frozenset(hdrs.METH_ALL)
"""With a label of their own: callers choose their methods."""
_OTHER_METHOD: Final = "other"
_NO_ROUTE: Final = "none"
_NO_ANSWER: Final = "none"
_FAULT: Final = "5xx"


class RequestMetrics:
    """Those of one gateway, which is its whole process or a part of it."""

    def __init__(self, version: str) -> None:
        # When each series began: a third of all series, which Prometheus does not need. A setting of the whole process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        # Not the default one: tests have many gateways in a process.
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "kubevnfm_http_requests",
            "Requests to the gateway by the class of their status; status none: the gateway was stopped before the answer.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "kubevnfm_http_request_seconds",
            "Time from the head of a request until its answer is made; of streams: until they end.",
            ["method", "route"],
            buckets=_REQUEST_BUCKETS_S,
            registry=registry,
        )
        self._running = Gauge("kubevnfm_http_requests_running", "Requests without an answer yet.", registry=registry)
        self._lag = Histogram(
            "kubevnfm_event_loop_lag_seconds",
            "How late the event loop resumes a task that sleeps.",
            buckets=_LAG_BUCKETS_S,
            registry=registry,
        )
        Gauge("kubevnfm_build_info", "1.", ["version"], registry=registry).labels(version).set(1)
        ProcessCollector(registry=registry)

    def add_to(self, app: web.Application) -> None:
        """Count the requests of an application; nothing but the server's own limits is outside of it."""
        app.middlewares.insert(0, self._middleware())

    async def watch_event_loop(self) -> NoReturn:
        """Measure the lag of the event loop until cancelled."""
        while True:
            begun = time.monotonic()
            await asyncio.sleep(_LAG_EVERY_S)
            self._lag.observe(max(0.0, time.monotonic() - begun - _LAG_EVERY_S))

    def text(self) -> str:
        """Return what Prometheus reads."""
        return generate_latest(self.registry).decode()

    def _middleware(self) -> Middleware:
        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            status, begun = _FAULT, time.monotonic()  # an error that is not handled is answered with 500
            self._running.inc()
            try:
                response = await handler(request)
                status = _class_of(response.status)
            except web.HTTPException as answer:
                status = _class_of(answer.status)
                raise
            except asyncio.CancelledError:
                status = _NO_ANSWER
                raise
            else:
                return response
            finally:
                self._running.dec()
                method = request.method if request.method in _METHODS else _OTHER_METHOD
                resource = request.match_info.route.resource
                route = _NO_ROUTE if resource is None else resource.canonical
                self._requests.labels(method, route, status).inc()
                self._seconds.labels(method, route).observe(time.monotonic() - begun)

        return counted


def _class_of(status: int) -> str:
    return f"{status // 100}xx"
