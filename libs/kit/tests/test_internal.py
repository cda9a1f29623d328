"""The guard of the internal HTTP APIs."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app


async def answer(_: web.Request) -> web.Response:
    return web.json_response({})


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
    async with serving(app, host="127.0.0.1", port=0, tls=None) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /internal/v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + b"\r\n")
        line = await reader.readline()
        writer.close()
    assert line.split()[1] == str(status).encode()


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
    async with serving(app, host="127.0.0.1", port=0, tls=None) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = b"Host: x\r\nConnection: close\r\nAuthorization: Bearer the-token\r\n\r\n"
        writer.write(b"GET /internal/v1/x/" + target + b" HTTP/1.1\r\n" + head)
        line = await reader.readline()
        writer.close()
    assert line.split()[1] == str(status).encode()
