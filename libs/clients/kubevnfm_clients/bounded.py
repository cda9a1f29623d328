"""Answers of servers that callers name: read up to a limit, so that none can exhaust the memory."""

from __future__ import annotations

import json
from typing import Any, Final

import aiohttp

_CHUNK: Final = 64 * 1024


async def read_json(response: aiohttp.ClientResponse, *, limit_bytes: int) -> Any:
    """Return the body's JSON value, None if it is not JSON. Raises aiohttp.ClientPayloadError if it is longer."""
    raw = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        raw += chunk
        if len(raw) > limit_bytes:
            raise aiohttp.ClientPayloadError(f"an answer of more than {limit_bytes} bytes")
    try:
        return json.loads(raw)
    except ValueError:
        return None
