"""The turns of watches that begin: a process that starts with hundreds of regions lists some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_AT_ONCE: Final = 32
"""Enough that the process has always an answer to read, and so few that none waits for longer than a connection may take."""
_LONGEST_S: Final = 5.0


class Starts:
    """The turns of all regions, in the order in which they are asked for."""

    def __init__(self, *, at_once: int = _AT_ONCE, longest_s: float = _LONGEST_S) -> None:
        """``longest_s``: after this time the next one has its turn: regions that do not answer hold none up."""
        self._free, self._longest_s = asyncio.Semaphore(at_once), longest_s

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn; yield what ends it before the block does."""
        await self._free.acquire()
        is_over = False

        def end() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                timer.cancel()
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._longest_s, end)
        try:
            yield end
        finally:
            end()
