"""Waits for the end of an operation (multicloud.md MC-004)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import OperationChanged
from kubevnfm_events.queues import OPERATION_ENDS
from kubevnfm_sol.lcm import TERMINAL, OperationState
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences

_LOOK_S: Final = 1.0
"""An event may not arrive: none is delivered to a watcher again."""
_RESTING: Final = frozenset({*TERMINAL, OperationState.FAILED_TEMP})


class OperationEnds:
    """The ends of operations, which any process may have run: those who wait look at the store when an event reports one."""

    def __init__(self, store: DocumentStore, *, look_s: float = _LOOK_S) -> None:
        """``look_s``: from one look at the store to the next while no event arrives."""
        self._store, self._look_s = store, look_s
        self._waiting: dict[str, set[asyncio.Event]] = {}
        """The events of those who wait, by the id of the operation."""

    @asynccontextmanager
    async def watching(self, bus: MessageBus) -> AsyncIterator[None]:
        """Receive events from the bus within the block."""
        async with bus.watch_events(OPERATION_ENDS, self.add):
            yield

    async def add(self, envelope: Envelope[Message]) -> None:
        """Take in an event."""
        changed = envelope.data
        if isinstance(changed, OperationChanged) and OperationState(changed.state) in _RESTING:
            for event in self._waiting.get(changed.vnf_lcm_op_occ_id, ()):
                event.set()

    async def ended(self, occurrence_id: str, wait_s: float) -> OperationState | None:
        """Return the state in which an operation has ended or rests; None if it runs after this time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        with self._notified(occurrence_id) as event:
            while (left_s := until - loop.time()) > 0:
                # Before the look: an event that comes during it is not lost.
                event.clear()
                stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
                state = None if stored is None else OperationState(stored.body["operationState"])
                if state in _RESTING:
                    return state
                with suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), min(self._look_s, left_s))
        return None

    @contextmanager
    def _notified(self, occurrence_id: str) -> Iterator[asyncio.Event]:
        """Yield what the end of an operation sets within the block."""
        event = asyncio.Event()
        mine = self._waiting.setdefault(occurrence_id, set())
        mine.add(event)
        try:
            yield event
        finally:
            mine.discard(event)
            if not mine:
                del self._waiting[occurrence_id]
