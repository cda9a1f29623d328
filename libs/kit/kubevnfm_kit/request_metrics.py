"""Counts the requests to the listener of a service."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from kubevnfm_kit.connections import Handler
from kubevnfm_kit.metrics import Metrics, traced
from kubevnfm_kit.traces import callers_trace

_METHODS: Final = frozenset(hdrs.METH_ALL)
"""With a label of their own: callers choose their methods."""
_OTHER_METHOD: Final = "other"
_NO_ROUTE: Final = "none"
_NO_ANSWER: Final = "none"
_FAULT: Final = "5xx"


class RequestMetrics:
    """The requests to one service; several of them may be in the process."""

    def __init__(self, metrics: Metrics, service: str) -> None:
        self._service = service
        self._requests = metrics.counter(
            "kubevnfm_http_requests",
            "Requests to a service by the class of their status; status none: it was stopped before the answer.",
            ["service", "method", "route", "status"],
        )
        self._seconds = metrics.histogram(
            "kubevnfm_http_request_seconds",
            "Time from the head of a request until its answer is made; of streams: until they end.",
            ["service", "method", "route"],
        )
        running = metrics.gauge("kubevnfm_http_requests_running", "Requests without an answer yet.", ["service"])
        self._running = running.series(service)

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
                caller = callers_trace()
                self._requests.series(self._service, method, route, status).inc()
                self._seconds.series(self._service, method, route).observe(
                    time.monotonic() - begun, None if caller is None else traced(caller.trace_id)
                )

        return counted


def _class_of(status: int) -> str:
    return f"{status // 100}xx"
