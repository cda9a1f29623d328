"""Runs independent calls concurrently, a few at a time, and waits for events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

A = TypeVar("A")
B = TypeVar("B")
AT_A_TIME: Final = 8
"""Simultaneous calls of one step to one API server (capi.md CR-014)."""
REQUESTS_PER_S: Final = 1000.0
BURST: Final = 2000
"""The default limit of the requests to one API server (multicloud.md MC-083)."""


async def each_of(items: Iterable[A], do: Callable[[A], Awaitable[B]]) -> Sequence[B]:
    """Return the results in the order of the items. After all calls have ended, the first item's error is raised."""
    items = list(items)
    if len(items) == 1:
        return [await do(items[0])]
    gate = asyncio.Semaphore(AT_A_TIME)

    async def one(item: A) -> B:
        async with gate:
            return await do(item)

    # All calls end before an error is raised, so that no request is still on its way when a retry begins.
    results = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    good: list[B] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        good.append(result)
    return good


async def is_set(event: asyncio.Event, *, within_s: float) -> bool:
    """Return True once the event is set, and clear it; False if it is not set in time."""
    try:
        async with asyncio.timeout(max(within_s, 0.0)):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
