"""Which of the connections to an API server a call uses: an open one where that costs less than a new one does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

KEPT_S: Final = 55.0
"""How long a connection stays open without a call. API servers close it after 90 s, many load balancers after 60 s."""
MOST_KEPT: Final = 64
_FEW: Final = 4
"""So many calls at a time use one connection one after another, which takes less time than three TLS handshakes."""
_PATIENCE_S: Final = 1.0
"""How long a call waits for the connection of another one, whose answer may take long, as that of a webhook does."""


class SharedConnections:
    """Counts the connections of calls, not those of watches; the connector keeps and closes them."""

    def __init__(self) -> None:
        self._free, self._kept = asyncio.Semaphore(1), 1
        self._calls = 0
        self._last_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """Yield when a call may use or open a connection; whether that is kept afterwards."""
        loop = asyncio.get_running_loop()
        if not self._calls and loop.time() - self._last_at > KEPT_S:
            self._free, self._kept = asyncio.Semaphore(1), 1
        self._calls += 1
        is_kept = False
        try:
            is_kept = await self._is_open_or_kept()
            yield is_kept
        finally:
            self._calls -= 1
            self._last_at = loop.time()
            if is_kept:
                self._free.release()

    async def _is_open_or_kept(self) -> bool:
        if not self._free.locked():
            # At once: a timer for each call would take longer.
            return await self._free.acquire()
        # Many calls at a time would wait for each other for longer than connections take.
        patience_s = 0.0 if self._calls > _FEW and self._kept < MOST_KEPT else _PATIENCE_S
        try:
            async with asyncio.timeout(patience_s):
                await self._free.acquire()
        except TimeoutError:
            if self._kept == MOST_KEPT:
                return False
            self._kept += 1
        return True
