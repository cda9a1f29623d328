"""The id of an HTTP request: from its caller or ours, in its answer, its log line, and all that follows from it.

Its place is the context of the log (``request_id`` among structlog's context variables): each line has it from there, and what stores it
or sends it on asks `present_request_id`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final, TypeVar

import structlog
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, web
from structlog.contextvars import bound_contextvars, get_contextvars

from kubevnfm_kit.ids import new_id
from kubevnfm_kit.traces import trace_of, traced_by

log = structlog.get_logger()

T = TypeVar("T")

HEADER: Final = "X-Request-ID"
REQUEST_ID: Final = web.RequestKey("request_id", str)
CALLER_NAME: Final = web.RequestKey("caller_name", str)
"""The name that its caller has proved; absent: none."""
_FORM: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_FACT: Final = "request_id"
_QUIET: Final = ("/health/", "/metrics")
"""Paths that are asked all the time, by monitors."""


def read_request_id(text: str) -> str:
    """Return the text if it has the form of a request's id, else an empty one."""
    return text if _FORM.fullmatch(text) else ""


def present_request_id() -> str:
    """Return the id of the request that the work at hand follows from; empty if it follows from none."""
    return str(get_contextvars().get(_FACT, ""))


def is_quiet(request: web.Request) -> bool:
    """Return whether it is a request of a monitor, which comes all the time."""
    return request.path.startswith(_QUIET)


@contextmanager
def caused_by(request_id: str) -> Iterator[None]:
    """Let the block, and tasks that are begun in it, follow from the request."""
    with bound_contextvars(**{_FACT: request_id}):
        yield


def for_all(work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Begin a task that several requests and commands share: it follows from none of them, so its lines have no ids of the first."""
    return asyncio.create_task(work, name=name, context=Context())


@web.middleware
async def identified(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Give the request its id and the trace that its headers name, and say in one line how it has ended: outermost, so that each
    request is one line.

    The line has no value that the caller has given: not the path, but its template, and no query.
    """
    # Several headers of the name are as none: which one its sender means is not known.
    given = request.headers.getall(HEADER, ())
    begun_at = time.perf_counter()
    status: int | None = 500
    request[REQUEST_ID] = (read_request_id(given[0]) if len(given) == 1 else "") or new_id()
    with caused_by(request[REQUEST_ID]), traced_by(trace_of(request.headers)):
        try:
            response = await handler(request)
            status = response.status
            return response
        except web.HTTPException as answer:
            status = answer.status
            raise
        except asyncio.CancelledError:  # the service ends; if the caller has left, the work continues to its end
            status = None
            raise
        finally:
            resource = request.match_info.route.resource
            say = log.debug if is_quiet(request) else log.info
            say(
                "http_request",
                method=request.method,
                route=resource.canonical if resource is not None else None,
                status=status,
                duration_ms=round((time.perf_counter() - begun_at) * 1000, 1),
                caller=request.get(CALLER_NAME),
            )


async def answer_with_id(request: web.Request, response: web.StreamResponse) -> None:
    """Write the id into each answer: a signal (``on_response_prepare``), because streams are answers too."""
    if request_id := request.get(REQUEST_ID):
        response.headers[HEADER] = request_id


async def send_request_id(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Name the present request in a call of another service: a middleware of aiohttp's clients."""
    if request_id := present_request_id():
        request.headers[HEADER] = request_id
    return await handler(request)
