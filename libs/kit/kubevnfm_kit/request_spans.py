"""The live span of an HTTP request that is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import hdrs, web

from kubevnfm_kit import live_spans
from kubevnfm_kit.request_ids import is_quiet
from kubevnfm_kit.traces import callers_trace

_OTHER: Final = "_OTHER"
"""A method that HTTP does not have (OpenTelemetry's semantic conventions)."""
_INTERNAL: Final = "/internal/"
"""Calls of other services: those for no step and no request are rounds of theirs."""


@web.middleware
async def measured(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Measure a request; its caller's trace is that of the span. Nothing that the caller has chosen is an attribute."""
    caller = callers_trace()
    if is_quiet(request) or (caller is None and request.path.startswith(_INTERNAL)):
        return await handler(request)
    method = request.method if request.method in hdrs.METH_ALL else _OTHER
    resource = request.match_info.route.resource
    facts: dict[str, live_spans.Value] = {"http.request.method": method}
    name = "HTTP" if method == _OTHER else method
    if resource is not None:
        facts["http.route"] = resource.canonical
        name = f"{name} {resource.canonical}"
    with (
        live_spans.root_span(name, "server", facts, caller) as span,
        live_spans.under(span.context),
    ):
        try:
            response = await handler(request)
        except web.HTTPException as answer:
            _note(span, answer.status)
            # An answer, not a fault: the span ends as it would with the same answer returned.
            raised = answer
        else:
            _note(span, response.status)
            return response
    raise raised


def _note(span: live_spans.LiveSpan, status: int) -> None:
    span.note("http.response.status_code", status)
    if status >= 500:
        span.failed(str(status))
