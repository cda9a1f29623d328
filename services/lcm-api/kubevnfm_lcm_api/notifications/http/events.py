"""``/kubevnfm/v1/events``: events as server-sent events (WHATWG HTML 9.2), from now or from ``Last-Event-ID``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import web
from kubevnfm_bus.routing import fits
from kubevnfm_events.lcm import InstanceDeleted
from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_kit.outages import unless_said

from kubevnfm_lcm_api.http.bodies import EVENT_STREAM
from kubevnfm_lcm_api.http.permission import Permission
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.notifications.event_feed import Missed, Silence, Wanted
from kubevnfm_lcm_api.notifications.event_log import LoggedEvent
from kubevnfm_lcm_api.notifications.http.context import SERVICES, services

log = structlog.get_logger()

_HEARTBEAT_S: Final = 15.0
_RECONNECT_MS: Final = 2000
_WRITE_TIMEOUT_S: Final = 30.0
"""How long one write may wait for a watcher that does not read."""
_MAX_PATTERNS: Final = 20
_LAST: Final = InstanceDeleted.routing_key()

Exists = Callable[[], Awaitable[bool]]


@dataclass(frozen=True)
class _Watched:
    """The filter of a stream, its beginning and its end."""

    wanted: Wanted
    first: Mapping[str, object] | None = None
    """Sent before the events, as an event ``operation``."""
    exists: Exists | None = None
    """Whether the instance still exists without which the stream ends."""
    gap: str = "missed"
    """The name of the event that says that others may be missing."""


async def events(request: web.Request) -> web.StreamResponse:
    """GET events[?vnfInstanceId=][&operation=][&type=]: events as they happen, with heartbeats."""
    return await _stream(request, _Watched(_filter(request.query)))


def _filter(query: Mapping[str, str]) -> Wanted:
    """Return the filter of a query. Raises InvalidInput."""
    if "instance" in query and "vnfInstanceId" in query:
        raise InvalidInput("instance", "instance is another name of vnfInstanceId: only one of them expected")
    instance = query.get("vnfInstanceId") or query.get("instance")
    operation = query.get("operation")
    patterns = _patterns(query["type"]) if "type" in query else ("#",)

    def wanted(event: LoggedEvent) -> bool:
        return (
            (not instance or event.subject == instance)
            and (not operation or event.operation_id == operation)
            and any(fits(pattern, event.key) for pattern in patterns)
        )

    return wanted


def _patterns(text: str) -> Sequence[str]:
    """Return the patterns of ``type=lcm.#,vim.status.changed``; a CloudEvents type is replaced by its routing key."""
    patterns = [one.strip().removeprefix("kubevnfm.").removesuffix(".v1") for one in text.split(",")]
    if len(patterns) > _MAX_PATTERNS or any(one.count("#") > 1 or not one for one in patterns):
        raise InvalidInput(
            "type", f"up to {_MAX_PATTERNS} patterns expected, separated by commas, each with at most one #"
        )
    return patterns


async def stream_operation(request: web.Request, operation_id: str, first: Mapping[str, object]) -> web.StreamResponse:
    """Answer with ``first`` as an event ``operation``, then with the operation's events as they happen."""
    return await _stream(request, _Watched(_filter({"operation": operation_id}), first))


async def stream_instance(request: web.Request, instance_id: str, exists: Exists) -> web.StreamResponse:
    """Answer with the events of a VNF instance as they happen, until it is deleted (multicloud.md MC-054).

    ``exists`` is asked at each heartbeat: the event of the deletion may have come before the stream was open.
    """
    return await _stream(request, _Watched(_filter({"vnfInstanceId": instance_id}), exists=exists, gap="reset"))


async def _stream(request: web.Request, watched: _Watched) -> web.StreamResponse:
    """Answer with the wanted events. Raises TooManyRequests."""
    with services(request).feed.place_for_one():
        return await _written(request, watched)


async def _written(request: web.Request, watched: _Watched) -> web.StreamResponse:
    # Some proxies buffer an answer until its end unless this header forbids it.
    headers = {"Content-Type": EVENT_STREAM, "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    try:
        with suppress(ConnectionResetError, TimeoutError):  # the watcher went away, or does not read
            await response.prepare(request)
            async for block in _blocks(request, watched):
                await asyncio.wait_for(response.write(block), _WRITE_TIMEOUT_S)
            return response
    except VnfmError as error:
        # The watcher would read a second answer as a part of this one. It connects again, and goes on after its last event.
        if not response.prepared:
            raise
        unless_said(error).warning("event_stream_ended", path=request.path, reason=str(error))
        return response
    if request.transport is not None:
        # A normal close would wait until a watcher that does not read has received everything.
        request.transport.abort()
    return response


async def _blocks(request: web.Request, watched: _Watched) -> AsyncIterator[bytes]:
    after = request.headers.get("Last-Event-ID") or None
    # At once, so that a client knows that the stream is open before the first event.
    yield f": connected\nretry: {_RECONNECT_MS}\n\n".encode()
    if watched.first is not None:
        yield f"event: operation\ndata: {json.dumps(watched.first, separators=(',', ':'))}\n\n".encode()
    permission = Permission(request)
    async for event in services(request).feed.follow(watched.wanted, after=after, silence_s=_HEARTBEAT_S):
        if not await permission.lasts():
            return
        match event:
            case Silence():
                if watched.exists is not None and not await watched.exists():
                    return
                yield b": alive\n\n"
            case Missed():
                yield f"event: {watched.gap}\ndata: {json.dumps({'lastEventId': after})}\n\n".encode()
            case LoggedEvent():
                yield f"id: {event.id}\nevent: {event.key}\ndata: {event.text}\n\n".encode()
                if watched.exists is not None and event.key == _LAST:
                    return


async def end_streams(app: web.Application) -> None:
    """End the streams, so that the gateway does not wait for watchers when it stops."""
    app[SERVICES].feed.close()


def routes() -> list[Route]:
    """Return the route of the stream."""
    about = (
        Parameter("vnfInstanceId", "Of this VNF instance only"),
        Parameter("instance", "Another name of vnfInstanceId"),
        Parameter("operation", "Of this operation occurrence only"),
        Parameter("type", "Of these types only: routing keys with * and #, divided by commas"),
    )
    endless = {200: Answer("Server-sent events as they happen, without end", media_types=(EVENT_STREAM,))}
    return [Route("Progress", "GET", "/kubevnfm/v1/events", events, "Watch events", endless, query=about)]
