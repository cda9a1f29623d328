"""The stream of events for people and programs that watch: live, or from the last event that they have received.

One subscription to the bus feeds all watchers of this gateway. The newest events are in memory, and each watcher has a
position among them. A watcher that falls too far behind is disconnected, so that memory stays bounded. `event_log` has
the older events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from typing import Final

from kubevnfm_access.errors import TooManyRequests
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Message
from kubevnfm_events.queues import EVENT_LOG
from kubevnfm_kit.clock import Clock

from kubevnfm_lcm_api.notifications.event_log import RETENTION, EventLog, LoggedEvent

_NEWEST: Final = 2000
_MOST_WATCHERS: Final = 200
"""Each keeps a connection; a quarter of those that a listener has, so that watchers keep no other caller out."""
_AGAIN_S: Final = 10


class Silence:
    """No event of the filter has happened for a while."""


class Missed:
    """The last event of a watcher is no longer stored: the watcher may have missed events after it."""


Wanted = Callable[[LoggedEvent], bool]


class EventFeed:
    """The newest events, and their watchers."""

    def __init__(self, event_log: EventLog, clock: Clock, *, newest: int = _NEWEST) -> None:
        """``newest``: how many events a watcher may be behind."""
        self._log, self._clock = event_log, clock
        self._events: deque[LoggedEvent] = deque(maxlen=newest)
        self._times: deque[datetime] = deque(maxlen=newest)
        """When they arrived."""
        self._count = 0
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._watchers = 0

    @contextmanager
    def place_for_one(self) -> Iterator[None]:
        """Have a watcher within the block. Raises TooManyRequests."""
        if self._watchers >= _MOST_WATCHERS:
            raise TooManyRequests("no more event streams can be opened here", retry_after_s=_AGAIN_S)
        self._watchers += 1
        try:
            yield
        finally:
            self._watchers -= 1

    @asynccontextmanager
    async def watching(self, bus: MessageBus) -> AsyncIterator[None]:
        """Receive events from the bus within the block."""
        async with bus.watch_events(EVENT_LOG.patterns, self.add):
            try:
                yield
            finally:
                self.close()

    async def add(self, envelope: Envelope[Message]) -> None:
        """Add an event."""
        self._events.append(LoggedEvent.from_envelope(envelope))
        self._times.append(self._clock.now())
        self._count += 1
        self._wake()

    def position(self) -> str:
        """Return the place of the stream at this moment: `follow` goes on after it, on every gateway."""
        # Another gateway, or this one after a restart, has older events no more.
        if self._events and self._clock.now() - self._times[-1] < RETENTION / 2:
            return self._events[-1].id
        return self._log.moment()

    def close(self) -> None:
        """End the streams of all watchers."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()

    async def follow(
        self, wanted: Wanted, *, after: str | None, silence_s: float
    ) -> AsyncGenerator[LoggedEvent | Silence | Missed, None]:
        """Yield the wanted events after the event ``after``, or from now on; ends if the watcher falls too far behind."""
        place, seen = self._count, {after}
        if after is not None:
            known = self._place_after(after)
            missing = await self._log.after(after) if known is None else None
            if known is not None:
                place = known
            elif missing is None:
                yield Missed()
            else:
                # The events in memory too: the log may not have written the newest ones yet. `seen` leaves out those
                # that the log returned.
                place = self._count - sum(arrived >= missing.since for arrived in self._times)
                async for event in missing.events:
                    if event.id not in seen and wanted(event):
                        yield event
                    seen.add(event.id)
        # Only events up to here can have been in the log's answer.
        newest_replayed = self._count
        loop = asyncio.get_running_loop()
        yielded_at = loop.time()
        while not self._is_closed:
            first = self._count - len(self._events)
            if place < first:
                return
            if place < self._count:
                event = self._events[place - first]
                place += 1
                if wanted(event) and not (place <= newest_replayed and event.id in seen):
                    yield event
                    yielded_at = loop.time()
            else:
                await self._more(yielded_at + silence_s - loop.time())
            if loop.time() - yielded_at >= silence_s:
                yield Silence()
                yielded_at = loop.time()

    def _place_after(self, event_id: str) -> int | None:
        first = self._count - len(self._events)
        return next((first + n + 1 for n, event in enumerate(self._events) if event.id == event_id), None)

    async def _more(self, longest_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), longest_s)
