"""Work that documents are due for: each is claimed by one process, at its time.

``internal/dueAt`` is when a document is due. A process claims it by moving that moment on by the length of a lease: if the process
is killed, the document is due again when the lease ends. The work writes the next moment, if the claim is still its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.outages import unless_said
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
_AT_ONCE: Final = 8
_PAGE: Final = 50
_LARGE: Final = ("reports", "internal/sides", "internal/sampled", "metadata", "servers")
"""The claimed document has them again."""
_LOOK_S: Final = 5.0
"""So often documents are looked for that other processes have made."""
_SHORTEST_S: Final = 0.02

Work = Callable[[Stored, str], Awaitable[None]]
"""Does the work of a document, claimed under this id, and writes when it is due next."""


class DueWork:
    """The work of one collection."""

    def __init__(self, store: DocumentStore, clock: Clock, collection: str, work: Work, woken: asyncio.Event) -> None:
        """``woken``: set when this process has made a document, to look for what is due at once."""
        self._store, self._clock, self._collection, self._work = store, clock, collection, work
        self._woken = woken
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                self._woken.clear()
                pause_s = await self._look()
                try:
                    async with asyncio.timeout(pause_s):
                        await self._woken.wait()
                except TimeoutError:
                    pass
        finally:
            tasks = list(self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> float:
        """Claim what is due; return the time until the next look."""
        first = Query(Compare(DUE, Op.GT, [NEVER]), sort=Sort(DUE), limit=_PAGE, exclude=_LARGE)
        try:
            found = await self._store.find(self._collection, first)
            for stored in found:
                if self._left_s(stored) > 0 or len(self._running) >= _AT_ONCE:
                    break
                if stored.id not in self._running:
                    await self._claim(stored)
        except VnfmError as error:
            unless_said(error).warning("due_work_postponed", collection=self._collection, reason=str(error))
            return _LOOK_S
        if len(self._running) >= _AT_ONCE:
            return _LOOK_S  # the end of one of them wakes this
        waiting = [self._left_s(each) for each in found if each.id not in self._running]
        return max(_SHORTEST_S, min([*waiting, _LOOK_S]))

    def _left_s(self, stored: Stored) -> float:
        due = datetime.fromisoformat(stored.body["internal"]["dueAt"])
        return (due - self._clock.now()).total_seconds()

    async def _claim(self, stored: Stored) -> None:
        claim = new_id()
        moved = {DUE: lease_end(self._clock.now(), LEASE_S), CLAIM: claim}
        try:
            claimed = await self._store.update(self._collection, stored.id, moved, if_revision=stored.revision)
        except RevisionConflict:  # another process was faster, or the document was changed: the next look finds it
            self._woken.set()
            return
        task = asyncio.create_task(self._do(claimed, claim), name=f"due {stored.id}")
        self._running[stored.id] = task

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
            self._running.pop(stored.id, None)
            self._woken.set()


def due_fields(clock: Clock, moment: datetime) -> dict[str, str]:
    """Return the fields with which a document is due at a moment, at once if it has passed."""
    return {DUE: rfc3339(max(moment, clock.now()))}
