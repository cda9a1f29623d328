"""Work that documents are due for: each is claimed by one process, at its time.

``internal/dueAt`` is when a document is due. A process claims it by moving that moment on by the length of a lease: if the process
is killed, the document is due again when the lease ends. The work writes the next moment, if the claim is still its own.

Most work asks another system, its source, and one that does not answer must not hold up the work that asks others (`_Places`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.outages import unless_said
from kubevnfm_kit.run import look_when_due
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Query, Sort, Stored
from kubevnfm_worker.leases import lease_end

log = structlog.get_logger()

DUE: Final = "internal/dueAt"
NEVER: Final = ""
"""The time of a document that is not due any more."""
CLAIM: Final = "internal/claim"
LEASE_S: Final = 90.0
"""Longer than any work takes: `WORK_S`."""
WORK_S: Final = 60.0
_AT_ONCE: Final = 16
_OF_SOURCE: Final = 8
_OF_SLOW: Final = 8
_SLOW_S: Final = 5.0
"""Work that takes longer, or has run for longer, makes its source a slow one."""
_MOST_SLOW: Final = 1000
_LEFT_FOR: Final = timedelta(seconds=10)
"""So long what is due is left, because its slow source has its place."""
_PAGE: Final = 50
_LARGE: Final = ("reports", "internal/sides", "internal/sampled", "metadata", "servers")
"""The claimed document has them again."""
_LOOK_S: Final = 5.0
"""So often documents are looked for that other processes have made."""
_SHORTEST_S: Final = 0.02

Work = Callable[[Stored, str], Awaitable[None]]
"""Does the work of a document, claimed under this id, and writes when it is due next."""
SourceOf = Callable[[JsonMapping], str]
"""Returns the system that the work of a document asks, from what `DueWork` reads of it first; empty: that is not known."""


@dataclass
class _Places:
    """The work that runs. A source has half of the places; one that is slow has one, and all of these have half of them."""

    running: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The source of each document whose work runs, and the begin of the work."""
    slow: dict[str, None] = field(default_factory=dict)
    """The sources whose last work was slow, the newest ones."""

    @property
    def are_full(self) -> bool:
        """Whether nothing more can begin."""
        return len(self.running) >= _AT_ONCE

    def is_slow(self, source: str) -> bool:
        """Return whether the source has taken long the last time, or does so now."""
        since = time.monotonic() - _SLOW_S
        # Those that are not known are several.
        return bool(source) and (
            source in self.slow or any(name == source and begin < since for name, begin in self.running.values())
        )

    def has_one_for(self, source: str) -> bool:
        """Return whether work of the source can begin now."""
        sources = [name for name, _ in self.running.values()]
        if not self.is_slow(source):
            return sources.count(source) < _OF_SOURCE
        return source not in sources and sum(map(self.is_slow, sources)) < _OF_SLOW

    def begin(self, document: str, source: str) -> None:
        """Note that the work of a document begins."""
        self.running[document] = source, time.monotonic()

    def end(self, document: str) -> None:
        """Note that it has ended."""
        source, begin = self.running.pop(document)
        self.slow.pop(source, None)
        if time.monotonic() - begin > _SLOW_S:
            self.slow[source] = None
            if len(self.slow) > _MOST_SLOW:
                del self.slow[next(iter(self.slow))]


class DueWork:
    """The work of one collection."""

    def __init__(
        self,
        store: DocumentStore,
        clock: Clock,
        collection: str,
        work: Work,
        woken: asyncio.Event,
        source_of: SourceOf,
    ) -> None:
        """``woken``: set when this process has made a document, to look for what is due at once."""
        self._store, self._clock, self._collection, self._work = store, clock, collection, work
        self._woken, self._source_of = woken, source_of
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._places = _Places()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await look_when_due(self._look, self._woken)
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> float:
        """Claim what is due; return the time until the next look."""
        first = Query(Compare(DUE, Op.GT, [NEVER]), sort=Sort(DUE), limit=_PAGE, exclude=_LARGE)
        waiting, has_left = [_LOOK_S], False
        try:
            found = await self._store.find(self._collection, first)
            for stored in found:
                left_s = self._left_s(stored)
                if left_s > 0 or self._places.are_full:
                    waiting.append(left_s)
                    break
                if stored.id in self._tasks:
                    continue
                source = self._source_of(stored.body)
                if self._places.has_one_for(source):
                    await self._claim(stored, source)
                elif self._places.is_slow(source):
                    # Otherwise those of one slow source could fill the page, and what is behind them would never be found.
                    await self._leave(stored)
                    has_left = True
        except VnfmError as error:
            unless_said(error).warning("due_work_postponed", collection=self._collection, reason=str(error))
            return _LOOK_S
        if self._places.are_full:
            return _LOOK_S  # the end of one of them wakes this
        if has_left and len(found) == _PAGE:
            return _SHORTEST_S
        return max(_SHORTEST_S, min(waiting))

    def _left_s(self, stored: Stored) -> float:
        due = datetime.fromisoformat(stored.body["internal"]["dueAt"])
        return (due - self._clock.now()).total_seconds()

    async def _claim(self, stored: Stored, source: str) -> None:
        claim = new_id()
        moved = {DUE: lease_end(self._clock.now(), LEASE_S), CLAIM: claim}
        claimed = await self._moved(stored, moved)
        if claimed is not None:
            self._places.begin(stored.id, source)
            self._tasks[stored.id] = asyncio.create_task(self._do(claimed, claim), name=f"due {stored.id}")

    async def _leave(self, stored: Stored) -> None:
        await self._moved(stored, due_fields(self._clock, self._clock.now() + _LEFT_FOR))

    async def _moved(self, stored: Stored, fields: JsonMapping) -> Stored | None:
        try:
            return await self._store.update(self._collection, stored.id, fields, if_revision=stored.revision)
        except RevisionConflict:  # another process was faster, or the document was changed: the next look finds it
            self._woken.set()
            return None

    async def _do(self, stored: Stored, claim: str) -> None:
        try:
            async with asyncio.timeout(WORK_S):
                await self._work(stored, claim)
        except VnfmError as error:
            # The lease ends, and the document is due again; so below.
            unless_said(error).warning("due_work_failed", collection=self._collection, id=stored.id, reason=str(error))
        except TimeoutError:
            log.warning("due_work_failed", collection=self._collection, id=stored.id, reason="it took too long")
        except Exception:  # a fault of ours with one document must not stop the others, and must be seen
            log.exception("due_work_failed", collection=self._collection, id=stored.id)
        finally:
            self._tasks.pop(stored.id, None)
            self._places.end(stored.id)
            self._woken.set()


def due_fields(clock: Clock, moment: datetime) -> dict[str, str]:
    """Return the fields with which a document is due at a moment, at once if it has passed."""
    return {DUE: rfc3339(max(moment, clock.now()))}
