"""A listener's connections: limits on number, size and slowness of requests, and refusals as ProblemDetails.

If all connections are taken, the one that has waited longest for a request makes room for a new one. Connections that only
wait, however many, therefore keep no caller out. The last few places are for the health checks: a process that is busy with
requests must not be restarted for it.

aiohttp answers a request that it cannot parse with plain text, and waits without limit for bytes that were announced.
Here every refusal is ProblemDetails (RFC 7807), late headers end the connection, and a late body ends the request.
"""

from __future__ import annotations

import asyncio
import json
import select
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.request_ids import HEADER, caused_by, present_request_id

log = structlog.get_logger()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestTooSlow(VnfmError, code="request-timeout", title="Request timeout", status=408, retryable=True):
    """The body does not arrive, or arrives too slowly."""


@dataclass(frozen=True)
class Limits:
    """The limits on what a caller sends, and how slowly."""

    connections: int = 800
    """Connections at a time. If as many requests are being answered, further connections are answered 503. Below 1024, the
    number of open files that many systems allow a process."""
    for_health: int = 20
    """So many of them answer only ``/health/``; other requests on them are answered 503."""
    uri_bytes: int = 16_384
    """The request's target; more is 414. Clients split their filters at 8192 (api.md 1.6)."""
    header_bytes: int = 12_288
    """One header, name and value; more is 431. Large tokens have some KiB."""
    headers: int = 100
    """Number of headers; more is 431."""
    headers_s: float = 15.0
    """From a request's first byte to its last header."""
    idle_s: float = 75.0
    """Between requests, and before the first one: longer than proxies keep a connection."""
    body_window_s: float = 30.0
    """Within each such period ``body_window_bytes`` must arrive, or the rest of the body."""
    body_window_bytes: int = 30 * 1024


DEFAULT_LIMITS: Final = Limits()


class Connection(web.RequestHandler):
    """One caller's connection."""

    def __init__(self, server: web.Server, *, limits: Limits, open_ones: set[Connection]) -> None:
        """``open_ones``: the open connections of the same listener."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # None means none, as everywhere in aiohttp
            keepalive_timeout=limits.idle_s,
            max_line_size=limits.uri_bytes,
            max_field_size=limits.header_bytes,
            max_headers=limits.headers,
        )
        self._limits = limits
        self._open_ones = open_ones
        self._late: asyncio.TimerHandle | None = None
        self._waits_since = 0.0
        self._is_refused = False
        self._descriptor = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the caller. If there are too many, close one that waits; if none waits, answer 503 and close this one."""
        if len(self._open_ones) >= self._limits.connections and not self._make_room():
            assert isinstance(transport, asyncio.Transport)
            self._is_refused = True
            with caused_by(new_id()):
                log.warning("connection_refused", connections=self._limits.connections)
                # Before aiohttp knows the connection: a refusal starts no task that waits for a request.
                transport.write(_too_many())
            transport.close()
            return
        self._open_ones.add(self)
        self._descriptor = transport.get_extra_info("socket").fileno()
        self._waits_since = asyncio.get_running_loop().time()
        super().connection_made(transport)

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a whole request head; return False if all are busy."""
        waiting = {each._descriptor: each for each in self._open_ones if each._waits}
        # Many callers may come at once: bytes that were not read yet are a request, unless the caller has left.
        unread = select.poll()
        for descriptor in waiting:
            unread.register(descriptor, select.POLLIN | select.POLLRDHUP)
        for descriptor, events in unread.poll(0):
            if not events & (select.POLLRDHUP | select.POLLHUP | select.POLLERR):
                del waiting[descriptor]
        if not waiting:
            return False
        oldest = min(waiting.values(), key=lambda each: each._waits_since)
        log.info("connection_closed_for_another", connections=self._limits.connections)
        self._open_ones.remove(oldest)
        oldest._head_is_whole()
        oldest.force_close()
        return True

    @property
    def _waits(self) -> bool:
        """Whether no request is being answered: none has come yet, or the last one was answered."""
        return self._waiter is not None and not self._waiter.done() and not self._messages

    def data_received(self, data: bytes) -> None:
        """Read bytes. From the first byte of a request's head on, the head must be complete within ``headers_s``."""
        # Closed above; bytes may arrive until the other side knows.
        if self not in self._open_ones:
            return
        super().data_received(data)
        if not self._waits:
            self._waits_since = asyncio.get_running_loop().time()
            self._head_is_whole()
        # Only the first byte starts the timer: with a new one for each byte a slow sender would never be late.
        elif self._late is None:
            self._late = asyncio.get_running_loop().call_later(self._limits.headers_s, self._head_is_late)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the caller from the open connections."""
        if not self._is_refused:  # aiohttp does not know a refused one
            self._open_ones.discard(self)
            self._head_is_whole()
            super().connection_lost(exc)

    def wait_no_more(self) -> None:
        """Close after the answer, without the grace in which callers may send the rest of a refused body."""
        self._lingering_time = 0.0

    def _head_is_whole(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _head_is_late(self) -> None:
        self._late = None
        if self._waiter is not None and not self._waiter.done():
            log.info("request_head_late", after_s=self._limits.headers_s)
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that could not be parsed, or an error that the application did not handle; then close."""
        # A second status line inside an answer would be read as a part of its body.
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is under way already")
        status, detail = self._refusal(status, exc)
        # One that could not be read has no id of its caller.
        with caused_by(present_request_id() or new_id()):
            if status >= 500:
                log.error("request_failed", exc_info=exc)
            else:
                log.info("request_refused", status=status, reason=detail)
            response = problem_answer(status, detail)
        response.force_close()
        return response

    def _refusal(self, status: int, exc: BaseException | None) -> tuple[int, str]:
        """Return status and detail. They never repeat the request: it may hold a secret in a wrong place."""
        if isinstance(exc, LineTooLong):
            # aiohttp gives the limit that was exceeded; only by it a long target differs from a long header
            if str(exc.args[1]) == str(self._limits.uri_bytes):
                return 414, f"the URI is longer than {self._limits.uri_bytes} characters"
            return 431, f"a header is longer than {self._limits.header_bytes} characters"
        if isinstance(exc, BadHttpMessage) and "Too many headers" in exc.message:
            return 431, f"more than {self._limits.headers} headers"
        if status >= 500:
            return status, "unexpected error" if status == 500 else "no answer in time"
        return status, "the request is not HTTP/1.1 as RFC 9112 has it"


_TITLES: Final = {
    400: "Bad Request",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def problem_answer(status: int, detail: str) -> web.Response:
    """Return ProblemDetails for a request that never reached an application, with the present request's id."""
    text, headers = _problem(status, detail), {HEADER: present_request_id()}
    return web.Response(status=status, text=text, headers=headers, content_type="application/problem+json")


def _problem(status: int, detail: str) -> str:
    problem = {"type": "about:blank", "title": _TITLES.get(status, "Error"), "status": status, "detail": detail}
    return json.dumps({**problem, "requestId": present_request_id()})


_BUSY: Final = "too many connections: try again later"


def _too_many() -> bytes:
    """Return the answer to a connection for which there is no place."""
    body = _problem(503, _BUSY)
    head = (
        "HTTP/1.1 503 Service Unavailable",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        f"{HEADER}: {present_request_id()}",
        "Retry-After: 5",
        "Connection: close",
    )
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode()


def places_for_health(limits: Limits) -> Any:
    """Return the outermost middleware: answers 503 if the places that are left are for health checks."""
    others = limits.connections - limits.for_health
    answering = 0

    @web.middleware
    async def admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal answering
        if request.path.startswith("/health/"):
            return await handler(request)
        if answering >= others:
            if isinstance(request.protocol, Connection):
                request.protocol.wait_no_more()
            response = problem_answer(503, _BUSY)
            response.headers["Retry-After"] = "5"
            response.force_close()
            return response
        answering += 1
        try:
            return await handler(request)
        finally:
            answering -= 1

    return admitted


def bounded_bodies(limits: Limits) -> Any:
    """Return the innermost middleware: reading a body that does not arrive raises RequestTooSlow."""

    @web.middleware
    async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
        body = request.content
        if body.is_eof():  # none, or it came with the headers
            return await handler(request)
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        seen = body.total_bytes
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal seen, timer
            if body.is_eof():
                return
            transport = request.transport
            # Reading is paused: the buffer is full, and the application does not read it.
            we_are_slow = transport is None or not transport.is_reading()
            if not we_are_slow and body.total_bytes - seen < limits.body_window_bytes:
                limit.reschedule(loop.time())
                return
            seen = body.total_bytes
            timer = loop.call_later(limits.body_window_s, look)

        timer = loop.call_later(limits.body_window_s, look)
        try:
            async with limit:
                return await handler(request)
        except TimeoutError as error:
            if not limit.expired():
                raise
            if isinstance(request.protocol, Connection):
                request.protocol.wait_no_more()
            raise RequestTooSlow("the body did not arrive in time") from error
        finally:
            if timer is not None:
                timer.cancel()

    return bounded
