"""Answers of servers that callers name: read up to a limit, so that none can exhaust the memory."""

from __future__ import annotations

from typing import Any, Final

import aiohttp
from kubevnfm_kit.foreign_json import read_foreign

_CHUNK: Final = 64 * 1024


class AnswerTooLarge(aiohttp.ClientPayloadError):
    """The answer is longer than any that is expected from this server."""


async def read_body(response: aiohttp.ClientResponse, *, limit_bytes: int) -> bytes:
    """Return the body, decompressed if the session decompresses. Raises AnswerTooLarge without reading the rest."""
    raw = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        raw += chunk
        if len(raw) > limit_bytes:
            # Otherwise the session would read the rest to keep the connection.
            response.close()
            raise AnswerTooLarge(f"an answer of more than {limit_bytes} bytes")
    return bytes(raw)


async def read_json(response: aiohttp.ClientResponse, *, limit_bytes: int) -> Any:
    """Return the body's JSON value, None if it is not JSON, or cannot be used. Raises AnswerTooLarge."""
    return json_in(await read_body(response, limit_bytes=limit_bytes))


def json_in(raw: bytes) -> Any:
    """Return the JSON value of a body, None if it is not JSON, or cannot be used."""
    try:
        return read_foreign(raw)
    except ValueError:
        return None
