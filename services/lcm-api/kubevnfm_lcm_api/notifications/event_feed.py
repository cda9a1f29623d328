"""What happens, for people and programs that watch: live, and from where they left off.

One watch of the bus feeds all watchers of this gateway: the newest events lie here in memory, each watcher has its
place among them, and who is too slow loses the connection, not the memory. What lies here no more is in `event_log`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Message

from kubevnfm_lcm_api.notifications.event_log import PATTERNS, EventLog, Told

_NEWEST: Final = 2000


class Silence:
    """Nothing that is wanted happened for a while."""


class Missed:
    """The event that a watcher had last is not known any more: what came after it may be lost to the watcher."""


Wanted = Callable[[Told], bool]


class EventFeed:
    """The newest events, and who follows them."""

    def __init__(self, event_log: EventLog, *, newest: int = _NEWEST) -> None:
        """``newest``: how many events a watcher may be behind."""
        self._log = event_log
        self._events: deque[Told] = deque(maxlen=newest)
        self._count = 0
        self._news = asyncio.Event()
        self._is_closed = False

    @asynccontextmanager
    async def watching(self, bus: MessageBus) -> AsyncIterator[None]:
        """Be fed by the bus within the block."""
        async with bus.watch_events(PATTERNS, self.take):
            try:
                yield
            finally:
                self.close()

    async def take(self, envelope: Envelope[Message]) -> None:
        """Note an event."""
        self._events.append(Told.of(envelope))
        self._count += 1
        self._wake()

    def close(self) -> None:
        """End every watcher's stream."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(
        self, wanted: Wanted, *, after: str | None, silence_s: float
    ) -> AsyncGenerator[Told | Silence | Missed, None]:
        """Yield the wanted events that come after the event ``after``, or from now on; ends for who is too slow."""
        place, seen = self._count, {after}
        if after is not None:
            known = self._place_after(after)
            missing = await self._log.after(after) if known is None else None
            if known is not None:
                place = known
            elif missing is None:
                yield Missed()
            else:
                place = self._count - len(self._events)
                async for told in missing:
                    if told.id not in seen and wanted(told):
                        yield told
                    seen.add(told.id)
        newest_replayed = self._count
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        while not self._is_closed:
            first = self._count - len(self._events)
            if place < first:
                return
            if place < self._count:
                told = self._events[place - first]
                place += 1
                if wanted(told) and not (place <= newest_replayed and told.id in seen):
                    yield told
                    heard_at = loop.time()
            else:
                await self._more(heard_at + silence_s - loop.time())
            if loop.time() - heard_at >= silence_s:
                yield Silence()
                heard_at = loop.time()

    def _place_after(self, event_id: str) -> int | None:
        first = self._count - len(self._events)
        return next((first + n + 1 for n, told in enumerate(self._events) if told.id == event_id), None)

    async def _more(self, longest_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), longest_s)
