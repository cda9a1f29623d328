"""Counts the requests to this gateway."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware
from kubevnfm_access.middleware import Handler
from kubevnfm_kit.metrics import Metrics, traced
from kubevnfm_kit.traces import trace_of

_METHODS: Final = frozenset(hdrs.METH_ALL)
"""With a label of their own: callers choose their methods."""
_OTHER_METHOD: Final = "other"
_NO_ROUTE: Final = "none"
_NO_ANSWER: Final = "none"
_FAULT: Final = "5xx"


class RequestMetrics:
    """The requests to one gateway."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counter(
            "kubevnfm_http_requests",
            "Requests to the gateway by the class of their status; status none: the gateway was stopped before the answer.",
            ["method", "route", "status"],
        )
        self._seconds = metrics.histogram(
            "kubevnfm_http_request_seconds",
            "Time from the head of a request until its answer is made; of streams: until they end.",
            ["method", "route"],
        )
        self._running = metrics.gauge("kubevnfm_http_requests_running", "Requests without an answer yet.").series()

    def add_to(self, app: web.Application) -> None:
        """Count the requests of an application; nothing but the server's own limits is outside of it."""
        app.middlewares.insert(0, self._middleware())

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
                caller = trace_of(request.headers)
                self._requests.series(method, route, status).inc()
                self._seconds.series(method, route).observe(
                    time.monotonic() - begun, None if caller is None else traced(caller.trace_id)
                )

        return counted


def _class_of(status: int) -> str:
    return f"{status // 100}xx"
