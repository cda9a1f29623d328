"""Polling for conditions that no event announces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

_PAUSE_S: Final = 0.05

T = TypeVar("T")


async def until(found: Callable[[], Awaitable[T | None]], *, timeout_s: float = 300.0, pause_s: float = _PAUSE_S) -> T:
    """Await ``found()`` repeatedly; return its first result that is not None. Raises TimeoutError."""
    async with asyncio.timeout(timeout_s):
        # A user over HTTP gets no event to wait for, so this polls as a user's script would.
        while (answer := await found()) is None:  # noqa: ASYNC110
            await asyncio.sleep(pause_s)
        return answer


async def until_true(holds: Callable[[], Awaitable[bool]], *, timeout_s: float = 300.0, pause_s: float = 0.002) -> None:
    """Await ``holds()`` repeatedly, in process; return when it is true. Raises TimeoutError."""

    async def found() -> bool | None:
        return True if await holds() else None

    await until(found, timeout_s=timeout_s, pause_s=pause_s)
