"""The guard of the internal HTTP APIs."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app


async def answer(_: web.Request) -> web.Response:
    return web.json_response({})


async def status_of(app: web.Application, target: bytes, header: bytes) -> int:
    """Ask in bytes of our own, which no client changes; return the status."""
    async with serving(app, host="127.0.0.1", port=0, tls=None) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + b"\r\n")
        line = await reader.readline()
        writer.close()
    return int(line.split()[1])


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"", 401),
        (b"Authorization: Bearer another\r\n", 401),
        ("Authorization: Bearer schlüssel\r\n".encode(), 401),
        (b"Authorization: Bearer \xff\r\n", 401),
        (b"Authorization: Bearer the-token\r\n", 200),
    ],
)
async def test_the_token_decides_whatever_bytes_a_header_has(header: bytes, status: int) -> None:
    app = internal_app([web.get("/internal/v1/x", answer)], token="the-token")
    assert await status_of(app, b"/internal/v1/x", header) == status


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"v-1", 200),
        (b"v-1%2fconnection", 404),
        (b"..", 404),
        (b"%2e%2e", 404),
        (b"..%2fx", 404),
        (b"v%3fx=y", 404),
        (b"v%23x", 404),
        (b"v%00", 404),
        (b"v%252fconnection", 404),
    ],
)
async def test_an_id_that_cannot_exist_reaches_no_handler(target: bytes, status: int) -> None:
    app = internal_app([web.get("/internal/v1/x/{id}", answer)], token="the-token")
    assert await status_of(app, b"/internal/v1/x/" + target, b"Authorization: Bearer the-token\r\n") == status
