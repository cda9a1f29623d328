"""Polling for conditions that no event announces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

_PAUSE_S: Final = 0.05
_LONGEST_S: Final = 0.25

T = TypeVar("T")


async def until(found: Callable[[], Awaitable[T | None]], *, timeout_s: float = 300.0, pause_s: float = _PAUSE_S) -> T:
    """Await ``found()`` repeatedly; return its first result that is not None. Raises TimeoutError.

    A tenth of the wait is slept at once, up to 0.25 s: what takes seconds is not asked for a hundred times.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    async with asyncio.timeout(timeout_s):
        # A user over HTTP gets no event to wait for, so this polls as a user's script would.
        while (answer := await found()) is None:  # noqa: ASYNC110
            await asyncio.sleep(max(pause_s, min((clock() - began) / 10, _LONGEST_S)))
        return answer


async def until_true(holds: Callable[[], Awaitable[bool]], *, timeout_s: float = 300.0, pause_s: float = 0.002) -> None:
    """Await ``holds()`` repeatedly, in process; return when it is true. Raises TimeoutError."""

    async def found() -> bool | None:
        return True if await holds() else None

    await until(found, timeout_s=timeout_s, pause_s=pause_s)
