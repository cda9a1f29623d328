"""A client of the gateway's streams of server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from worlds.lcm_world import World


class Stream:
    """An open stream, read event by event."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def block(self) -> list[str]:
        """Return the lines up to the next empty one."""
        found: list[str] = []
        async with asyncio.timeout(300):
            async for raw in self._lines:
                line = raw.decode().rstrip("\n")
                if not line:
                    return found
                found.append(line)
        raise AssertionError(f"the stream ended after {found}")

    async def event(self) -> dict[str, Any]:
        """Return the next event as its name, id and data."""
        while True:
            fields = dict(line.split(": ", 1) for line in await self.block() if not line.startswith(":"))
            if "event" in fields:
                return {**fields, "data": json.loads(fields["data"])}


@asynccontextmanager
async def watching(
    world: World, path: str = "/kubevnfm/v1/events", after: str | None = None, **query: str
) -> AsyncIterator[Stream]:
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
    async with world.session.get(f"{world.url}{path}", params=query, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        stream = Stream(response.content.__aiter__())
        assert ": connected" in await stream.block()
        yield stream
