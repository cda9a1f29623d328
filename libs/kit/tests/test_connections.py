"""A listener refuses too many connections, too long heads and too slow bodies, with ProblemDetails."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from healthy import healthy
from kubevnfm_kit.connections import Limits
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.health import add_health
from kubevnfm_kit.http import serving
from patience import until

QUICK = Limits(headers_s=0.2, idle_s=30.0, body_window_s=0.2, body_window_bytes=1024)


@web.middleware
async def errors_as_json(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
    try:
        return await handler(request)
    except VnfmError as error:
        return web.json_response({"type": error.code, "status": error.status}, status=error.status)


async def size(request: web.Request) -> web.Response:
    return web.json_response({"bytes": len(await request.read()), "query": len(request.query_string)})


async def broken(_: web.Request) -> web.Response:
    raise RuntimeError("secret of the house")


@asynccontextmanager
async def listening(limits: Limits = QUICK) -> AsyncIterator[int]:
    app = web.Application(middlewares=[errors_as_json], client_max_size=2**20)
    app.add_routes([web.route("*", path, size) for path in ("/size", "/health/size")])
    app.add_routes([web.get("/broken", broken)])
    add_health(app, healthy)
    async with serving(app, host="127.0.0.1", port=0, limits=limits) as port:
        yield port


class Caller:
    """Bytes there and back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, Any]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1]) for line in head.lower().splitlines() if line.startswith("content-length")
        )
        body = json.loads(await self.reader.readexactly(length))
        return int(head.split(" ")[1]), body

    async def is_cut_off(self) -> bytes:
        """Wait until the other side has closed; return what it said before."""
        async with asyncio.timeout(300):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def calling(port: int) -> AsyncIterator[Caller]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Caller(reader, writer)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("request_bytes", "status", "says"),
    [
        (b"GET /size?a=" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "URI"),
        (b"GET /size HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n", 431, "header"),
        (b"GET /size HTTP/1.1\r\nHost: a\r\n" + b"X-A: 1\r\n" * 200 + b"\r\n", 431, "headers"),
        (b"nonsense\r\n\r\n", 400, "HTTP/1.1"),
        (b"GET /size HTTP/1.1\r\nHost: a\r\nBad Name: s3cret\r\n\r\n", 400, "HTTP/1.1"),
        (b"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: minus\r\n\r\n", 400, "HTTP/1.1"),
        (b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n", 500, "unexpected error"),
    ],
)
async def test_what_no_application_sees_is_refused_as_a_problem(request_bytes: bytes, status: int, says: str) -> None:
    async with listening() as port, calling(port) as caller:
        await caller.send(request_bytes)
        said = await caller.is_cut_off()
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == str(status).encode()
    assert b"application/problem+json" in head
    problem = json.loads(body)
    assert problem["status"] == status
    assert says in problem["detail"]
    assert "s3cret" not in str(problem)
    assert "secret of the house" not in str(problem)


WHOLE = b"GET /size HTTP/1.1\r\nHost: a\r\n\r\n"
HEALTH = b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n"
BEGUN = b"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1"
"""A request that is being answered until its last byte comes."""
PATIENT = Limits(connections=4, for_health=1, headers_s=60, body_window_s=60)


@asynccontextmanager
async def callers(port: int, number: int, sends: bytes) -> AsyncIterator[list[Caller]]:
    async with AsyncExitStack() as stack:
        found = [await stack.enter_async_context(calling(port)) for _ in range(number)]
        for caller in found:
            await caller.send(sends)
        yield found


async def test_callers_beyond_the_limit_are_answered_503_and_health_checks_are_served() -> None:
    async with listening(PATIENT) as port, callers(port, 3, BEGUN) as busy:
        for _ in range(2):  # the refused one gives its place back
            async with calling(port) as fourth:
                await fourth.send(WHOLE)
                status, problem = await fourth.answer()
                assert (status, problem["status"]) == (503, 503)
                assert "too many connections" in problem["detail"]
                assert await fourth.is_cut_off() == b""
        async with callers(port, 1, HEALTH) as [probe]:
            assert await probe.answer() == (200, {"status": "live"})
        # All places are taken, the last one by a health check: the connection itself is refused.
        async with callers(port, 1, BEGUN.replace(b"/size", b"/health/size")), calling(port) as fifth:
            assert (await fifth.answer())[0] == 503
            assert await fifth.is_cut_off() == b""
        for caller in busy:
            await caller.send(b"2")
            assert (await caller.answer())[0] == 200
        async with callers(port, 1, WHOLE) as [again]:
            assert (await again.answer())[0] == 200


async def test_of_requests_that_come_at_once_only_those_beyond_the_limit_are_refused() -> None:
    async with listening(PATIENT) as port, callers(port, 4, b"") as found:
        for caller in found:
            caller.writer.write(BEGUN)
        answers = [asyncio.create_task(caller.answer()) for caller in found]
        await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        assert [task.result()[0] for task in answers if task.done()] == [503]
        for caller, task in zip(found, answers, strict=True):
            if not task.done():
                await caller.send(b"2")
        assert sorted(status for status, _ in await asyncio.gather(*answers)) == [200, 200, 200, 503]


@pytest.mark.parametrize("sends", [b"", b"GET /size HT", WHOLE])
async def test_connections_that_only_wait_make_room_for_new_ones(sends: bytes) -> None:
    async with listening(PATIENT) as port, callers(port, 4, b"") as waiting:
        for caller in waiting:
            await caller.send(sends)
            if sends == WHOLE:
                assert (await caller.answer())[0] == 200
        async with callers(port, 1, WHOLE) as [new]:
            assert (await new.answer())[0] == 200
            assert await waiting[0].is_cut_off() == b""
            # Only the oldest: the others are still served.
            await waiting[1].send(WHOLE if sends != b"GET /size HT" else b"TP/1.1\r\nHost: a\r\n\r\n")
            assert (await waiting[1].answer())[0] == 200
            await new.send(WHOLE)
            assert (await new.answer())[0] == 200


async def test_a_uri_of_8192_characters_is_served() -> None:
    """API-016."""
    async with listening() as port, calling(port) as caller:
        uri = b"/size?" + b"x" * (8192 - len("/size?"))
        await caller.send(b"GET " + uri + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await caller.answer() == (200, {"bytes": 0, "query": 8186})


async def test_headers_that_come_a_byte_at_a_time_end_the_connection() -> None:
    async with listening() as port, calling(port) as caller:

        async def drip() -> None:
            for byte in b"GET /size HTTP/1.1\r\n" + b"X-More: and more\r\n" * 10_000:
                await caller.send(bytes([byte]))
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert await caller.is_cut_off() == b""
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)


async def test_headers_that_stop_in_the_middle_end_the_connection_and_whole_ones_do_not() -> None:
    async with listening() as port, calling(port) as slow, calling(port) as kept:
        await kept.send(b"GET /size HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await kept.answer())[0] == 200
        await slow.send(b"GET /size HT")
        await slow.send(b"TP/1.1\r\n")
        await slow.is_cut_off()
        await kept.send(b"GET /size HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await kept.answer())[0] == 200


@pytest.mark.parametrize("head", [b"Content-Length: 100000\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_a_body_that_comes_a_byte_at_a_time_is_408(head: bytes) -> None:
    async with listening() as port, calling(port) as caller:
        await caller.send(b"POST /size HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n")

        async def drip() -> None:
            for _ in range(10_000):
                await caller.send(b"1\r\nx\r\n" if b"chunked" in head else b"x")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        status, problem = await caller.answer()
        assert (status, problem["type"]) == (408, "request-timeout")
        await caller.is_cut_off()
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)


async def test_a_body_that_goes_on_coming_is_taken() -> None:
    async with listening(Limits(body_window_s=1.0, body_window_bytes=1)) as port, calling(port) as caller:
        await caller.send(b"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\n\r\n")
        for _ in range(50):  # more than two windows long
            await caller.send(b"x" * 6)
            await asyncio.sleep(0.05)
        assert await caller.answer() == (200, {"bytes": 300, "query": 0})


async def test_many_slow_callers_leave_nothing_behind() -> None:
    async with listening() as port:

        async def stall() -> None:
            async with calling(port) as caller:
                await caller.send(b"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 500)
                await caller.is_cut_off()

        await asyncio.gather(*(stall() for _ in range(20)))
        tracemalloc.start()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            await asyncio.gather(*(stall() for _ in range(50)))

        async def is_small() -> bool | None:
            gc.collect()
            return True if tracemalloc.get_traced_memory()[0] - before < 400_000 else None

        assert await until(is_small)
        tracemalloc.stop()
