"""The id of a request: from the caller or ours; in the answer, in each problem, in one line, and in calls of other services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web
from healthy import healthy
from kubevnfm_kit.connections import DEFAULT_LIMITS, Limits
from kubevnfm_kit.errors import Conflict
from kubevnfm_kit.health import add_health
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app
from kubevnfm_kit.request_ids import HEADER, identified, present_request_id, send_request_id
from patience import until_true
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

TOKEN = {"Authorization": "Bearer token"}


@asynccontextmanager
async def served(limits: Limits = DEFAULT_LIMITS) -> AsyncIterator[tuple[str, list[Any]]]:
    """Yield the root of a service, and the lines that are written meanwhile."""

    async def show(request: web.Request) -> web.Response:
        return web.json_response({"id": present_request_id()})

    async def refuse(_: web.Request) -> web.Response:
        raise Conflict("not now")

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"data: x\n\n")
        return response

    routes = [web.get("/internal/v1/things/{id}", show), web.get("/refused", refuse), web.get("/stream", stream)]
    app = internal_app(routes, token="token")
    add_health(app, healthy)
    with capture_logs([merge_contextvars]) as lines:
        async with serving(app, host="127.0.0.1", port=0, limits=limits) as port:
            yield f"http://127.0.0.1:{port}", lines


async def answer(url: str, headers: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the id in the head of the answer, and its body."""
    async with ClientSession() as session, session.get(url, headers=headers) as response:
        return response.headers[HEADER], await response.json()


@pytest.mark.parametrize("given", ["r-1", "A" * 128, "a.b_c:d/e+f=g-h", "0af7651916cd43dd8448eb211c80319c"])
async def test_the_callers_id_is_that_of_the_request(given: str) -> None:
    async with served() as (url, lines):
        head, body = await answer(f"{url}/internal/v1/things/7?password=s3cret", {**TOKEN, HEADER: given})
    assert head == body["id"] == given
    (line,) = [each for each in lines if each["event"] == "http_request"]
    assert line.pop("duration_ms") >= 0
    assert line == {
        "event": "http_request", "log_level": "info", "request_id": given, "method": "GET",
        "route": "/internal/v1/things/{id}", "status": 200, "caller": "a service",
    }  # fmt: skip


@pytest.mark.parametrize("given", ["", "A" * 129, "a b", "ä", "x;y", '"x"', "a\tb"])
async def test_an_id_of_another_form_is_replaced(given: str) -> None:
    async with served() as (url, _):
        first, body = await answer(f"{url}/internal/v1/things/7", {**TOKEN, HEADER: given})
        second, _ = await answer(f"{url}/internal/v1/things/7", {**TOKEN, HEADER: given})
    assert first == body["id"]
    assert len({first, second, given}) == 3


async def test_two_ids_are_none() -> None:
    async with served() as (url, _), ClientSession() as session:
        headers = [*TOKEN.items(), (HEADER, "one"), (HEADER, "two")]
        async with session.get(f"{url}/internal/v1/things/7", headers=headers) as response:
            assert response.headers[HEADER] not in {"one", "two", "one, two"}


@pytest.mark.parametrize(
    ("path", "status", "route"),
    [
        ("/internal/v1/things/7", 401, "/internal/v1/things/{id}"),
        ("/refused", 409, "/refused"),
        ("/nowhere", 404, None),
    ],
)
async def test_each_problem_and_its_line_have_the_id(path: str, status: int, route: str | None) -> None:
    async with served() as (url, lines):
        head, problem = await answer(f"{url}{path}", {HEADER: "r-1"})
    assert (head, problem["requestId"], problem["status"]) == ("r-1", "r-1", status)
    (line,) = [each for each in lines if each["event"] == "http_request"]
    assert (line["status"], line["route"], line["caller"], line["request_id"]) == (status, route, None, "r-1")


async def test_streams_have_the_id_and_probes_are_debug_lines() -> None:
    async with served() as (url, lines), ClientSession() as session:
        for path in ("/stream", "/health/live", "/health/ready"):
            async with session.get(f"{url}{path}", headers={HEADER: "r-1"}) as response:
                assert response.headers[HEADER] == "r-1", path
                await response.read()
    assert [(each["route"], each["log_level"]) for each in lines] == [
        ("/stream", "info"),
        ("/health/live", "debug"),
        ("/health/ready", "debug"),
    ]


async def test_a_caller_that_leaves_is_no_end_of_the_service_and_the_end_of_the_service_no_answer() -> None:
    has_begun, goes_on = asyncio.Event(), asyncio.Event()

    async def wait(_: web.Request) -> web.Response:
        has_begun.set()
        await goes_on.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/", wait)
    server = web.AppRunner(app, shutdown_timeout=0.01)
    app.middlewares.append(identified)
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", 0)
    await site.start()
    port = server.addresses[0][1]
    with capture_logs() as lines:

        async def is_said() -> bool:
            return len(lines) == 1

        for is_left in (True, False):
            has_begun.clear()
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await has_begun.wait()
            if is_left:
                writer.transport.abort()
                goes_on.set()
                await until_true(is_said)
                goes_on.clear()
        await server.cleanup()
        writer.close()
    assert [each["status"] for each in lines] == [200, None]


async def test_what_never_reaches_an_application_has_an_id_too() -> None:
    """A request that is not HTTP, one for which no place is left, and a connection for which none is."""
    limits = Limits(connections=1, for_health=1)
    async with served(limits) as (url, lines):
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET nowhere\r\n\r\n")
        refused = await reader.read()
        writer.close()
        await writer.wait_closed()
        line = next(each for each in lines if each["event"] == "request_refused")
        assert f"{HEADER}: {line['request_id']}".encode() in refused
        assert f'"requestId": "{line["request_id"]}"'.encode() in refused
        head, problem = await answer(f"{url}/refused", {HEADER: "r-2"})
        assert (head, problem["requestId"], problem["status"]) == ("r-2", "r-2", 503)


async def test_calls_of_other_services_name_the_request() -> None:
    seen: list[str] = []

    async def relay(request: web.Request) -> web.Response:
        async with (
            ClientSession(middlewares=[send_request_id]) as session,
            session.get(f"{url}/internal/v1/things/7", headers=TOKEN) as response,
        ):
            seen.append((await response.json())["id"])
        return web.Response()

    front = web.Application()
    front.router.add_get("/", relay)
    async with served() as (url, _), serving(front, host="127.0.0.1", port=0) as port, ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/", headers={HEADER: "r-1"}):
            pass
        async with (
            ClientSession(middlewares=[send_request_id]) as outside,
            outside.get(f"{url}/internal/v1/things/7", headers=TOKEN) as response,
        ):
            assert (await response.json())["id"] == response.headers[HEADER] != ""
    assert seen == ["r-1"]
