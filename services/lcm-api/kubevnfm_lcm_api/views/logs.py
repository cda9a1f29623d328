"""``GET /kubevnfm/v1/operations/{id}/log``: what machines and scripts have printed, as text, and what they print from now on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from typing import Final

import structlog
from aiohttp import web
from kubevnfm_clients.ports import LogPart
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.lcm import TERMINAL, OperationState

from kubevnfm_lcm_api.http.permission import Permission
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.views.operations import stored_operation
from kubevnfm_lcm_api.views.services import SERVICES, views

log = structlog.get_logger()

_HEADERS: Final = {"Content-Type": "text/plain; charset=utf-8", "X-Accel-Buffering": "no"}
"""Some proxies buffer an answer until its end unless a header forbids it."""
_HEARTBEAT_S: Final = 15.0
_HEARTBEAT: Final = b"\n"
_WRITE_TIMEOUT_S: Final = 30.0
"""How long one write may wait for a caller who does not read."""
_PAUSE_S: Final = 2.0
_LONGEST_NAME: Final = 253
_RESTING: Final = frozenset({*TERMINAL, OperationState.FAILED_TEMP})
_FLAGS: Final[Mapping[str, bool]] = {"": True, "true": True, "false": False}
_NODE: Final = Parameter("node", "Of this machine only")
_TASK: Final = Parameter("task", "Of this task only, by its stable name")
_FOLLOW: Final = Parameter(
    "follow", "Continue with what is printed until nothing of the operation runs any more", values=("true", "false", "")
)


async def show(request: web.Request) -> web.StreamResponse:
    """GET operations/{id}/log[?node=][&task=][&follow=]: what the machines printed, as text, secrets masked."""
    follow = request.query.get(_FOLLOW.name, "false")
    if follow not in _FLAGS:
        raise InvalidInput(_FOLLOW.name, "true or false expected")
    stored = await stored_operation(request)
    operation_id = stored.id
    if not _FLAGS[follow] or stored.body["operationState"] in _RESTING:
        return await _answered(request, services(request).node_logs.log(operation_id, **_only(request)))
    with views(request).followers.place_for_one() as closing:
        async with aclosing(_followed(request, operation_id, closing)) as parts:
            return await _answered(request, parts)


async def _answered(request: web.Request, parts: AsyncIterator[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers=_HEADERS)
    # Before the head of the answer: a service that is away is an error of its own.
    first = await anext(parts, b"")
    try:
        with suppress(ConnectionResetError, TimeoutError):  # the caller went away, or does not read
            await response.prepare(request)
            await asyncio.wait_for(response.write(first), _WRITE_TIMEOUT_S)
            async for part in parts:
                await asyncio.wait_for(response.write(part), _WRITE_TIMEOUT_S)
            await response.write_eof()
            return response
    except OutsideUnavailable as error:
        # A caller would take a second answer for text. A broken end shows that the rest is missing.
        log.warning("log_ended", path=request.path, reason=str(error))
    if request.transport is not None:
        request.transport.abort()
    return response


async def _followed(request: web.Request, operation_id: str, closing: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Yield the output until the operation rests, and an empty line while there is none for a while."""
    logs, only, permission = services(request).node_logs, _only(request), Permission(request)
    part = await logs.following(operation_id, {}, 0.0, **only)
    yield part.text
    is_resting = False
    while not closing.is_set() and await permission.lasts():
        # Output that was stored before the end is read after it.
        wait_s = 0.0 if is_resting else _HEARTBEAT_S
        try:
            part, is_resting = await _next(request, operation_id, part.place, wait_s, closing)
        except OutsideUnavailable as error:
            log.info("log_waits", operation_id=operation_id, reason=str(error))
            await asyncio.sleep(_PAUSE_S)
            continue
        if part.text:
            yield part.text
        elif wait_s == 0.0:
            return
        elif not is_resting:
            yield _HEARTBEAT
    raise OutsideUnavailable("the gateway stops, or the permission to read has ended")


async def _next(
    request: web.Request, operation_id: str, place: JsonMapping, wait_s: float, closing: asyncio.Event
) -> tuple[LogPart, bool]:
    """Return the next output, empty if there is none in this time, and whether the operation rests."""
    logs, only = services(request).node_logs, _only(request)
    if wait_s == 0.0:
        return await logs.following(operation_id, place, 0.0, **only), True
    reading = asyncio.ensure_future(logs.following(operation_id, place, wait_s, **only))
    resting = asyncio.ensure_future(views(request).ends.ended(operation_id, wait_s + _PAUSE_S))
    stopping = asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait({reading, resting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        part = reading.result() if reading.done() else LogPart(b"", place)
        return part, resting.done() and resting.result() is not None
    finally:
        for each in (reading, resting, stopping):
            each.cancel()
        await asyncio.gather(reading, resting, stopping, return_exceptions=True)


def _only(request: web.Request) -> dict[str, str | None]:
    """Return the machine and the task that are asked for. Raises InvalidInput for what can be the name of none."""
    given = {one.name: request.query.get(one.name) for one in (_NODE, _TASK)}
    for name, value in given.items():
        if value is not None and len(value) > _LONGEST_NAME:
            raise InvalidInput(name, f"up to {_LONGEST_NAME} characters expected")
    return given


def routes() -> list[Route]:
    """Return the route of logs."""
    printed = {200: Answer("Text as it is printed, secrets masked", media_types=("text/plain",))}
    summary = "Read what the machines printed"
    path, query = "/kubevnfm/v1/operations/{id}/log", (_NODE, _TASK, _FOLLOW)
    return [Route("Progress", "GET", path, show, summary, printed, query=query, checks_accept=False)]


async def end_followed(app: web.Application) -> None:
    """End the answers of those who follow, so that the gateway does not wait for them when it stops."""
    app[SERVICES].followers.close()
