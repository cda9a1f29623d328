"""Answers of servers that do not keep to HTTP, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
from kubevnfm_kit.http_client import HttpConnector

BODY = b'HTTP/1.1 204 No Content\r\nContent-Length: 15\r\n\r\n{"taken": true}'


@asynccontextmanager
async def answering(pieces: Sequence[bytes]) -> AsyncIterator[tuple[str, list[int]]]:
    """Serve that answer, in pieces that arrive one after the other; yield the URL and the requests of each connection."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = len(connections)
        connections.append(0)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                connections[place] += 1
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.001)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", connections


@pytest.mark.parametrize(
    ("pieces", "status", "text", "is_reused"),
    [
        ([BODY], 204, "", False),
        ([BODY[:40], BODY[40:]], 204, "", False),
        ([BODY[:-15], BODY[-15:]], 204, "", False),
        ([bytes([each]) for each in BODY], 204, "", False),
        ([b"HTTP/1.1 204 No Content\r\n\r\n", b""], 204, "", True),
        ([b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"], 204, "", True),
        ([b"HTTP/1.1 204 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntaken\r\n0\r\n\r\n"], 204, "", False),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"taken"], 200, "taken", True),
        ([b"HTTP", b"/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"], 202, "", True),
    ],
    ids=["at once", "in two", "body apart", "byte by byte", "none", "empty", "chunked", "200", "202"],
)
async def test_a_204_with_a_body_is_one(pieces: Sequence[bytes], status: int, text: str, *, is_reused: bool) -> None:
    """RFC 9110 15.3.5; such a connection is not used again, as the body may still be on the way."""
    async with answering(pieces) as (url, connections), aiohttp.ClientSession(connector=HttpConnector()) as session:
        for _ in range(2):
            async with session.get(url) as answer:
                assert (answer.status, await answer.text()) == (status, text)
    assert connections == ([2] if is_reused else [1, 1])


@pytest.mark.parametrize("pieces", [[b"HTTP/1.1 20"], [b"nonsense\r\n\r\n"], [b"HTTP/1.1 204 No Content\r\nA: b"]])
async def test_what_is_no_answer_is_an_error(pieces: Sequence[bytes]) -> None:
    timeout = aiohttp.ClientTimeout(total=0.3)
    async with answering(pieces) as (url, _), aiohttp.ClientSession(connector=HttpConnector()) as session:
        with pytest.raises((aiohttp.ClientError, TimeoutError)):
            async with session.get(url, timeout=timeout):
                pass
