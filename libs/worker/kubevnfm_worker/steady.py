"""Keeps the time of a service's steady clock in its database, so that the next process goes on from it.

The processes of other machines find it there too, and a clock that alone is wrong learns that from theirs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, Reading, SteadyClock, boot_id, rfc3339
from kubevnfm_kit.run import background, repeat
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Index, Op, Query, Sort, Stored

log = structlog.get_logger()

CLOCKS: Final = "clocks"
"""A document for each boot of each machine."""
_STORE_EVERY_S: Final = 30.0
_RECENT: Final = timedelta(minutes=5)
_KEPT: Final = timedelta(days=30)
_UNNAMED: Final = "unknown"


@asynccontextmanager
async def steady_clock(store: DocumentStore, machine: Clock | None = None) -> AsyncIterator[SteadyClock]:
    """Yield a clock that goes on from the time that the database has. Raises StoreUnavailable at the start."""
    await store.ensure_indexes(CLOCKS, [Index(["time"])])
    clock = SteadyClock(machine, since=await _last_reading(store))
    others = Others(store, clock)

    async def keep() -> None:
        await keep_reading(store, clock.reading())
        await others.compare()

    async with background(steady_clock=repeat(keep, every_s=_STORE_EVERY_S)):
        yield clock


class Others:
    """The clocks of other machines, as far as they run: their stored times go on."""

    def __init__(self, store: DocumentStore, clock: SteadyClock) -> None:
        self._store, self._clock = store, clock
        self._seen: dict[str, datetime] = {}

    async def compare(self) -> None:
        """Set the clock if another machine shows that it is wrong; it does so from the second look on."""
        recent = self._clock.machine.now() - _RECENT
        found = await self._store.find(CLOCKS, Query(Compare("time", Op.GTE, [rfc3339(recent)])))
        others = [_reading(each) for each in found if each.id != (boot_id() or _UNNAMED)]
        before, self._seen = self._seen, {each.boot: each.time for each in others}
        for other in others:
            is_running = other.boot in before and other.time != before[other.boot]
            if is_running and self._clock.agree(other, within_s=2 * _STORE_EVERY_S):
                log.warning("clock_set", reason="another machine shows the time of this machine's clock")
                return


async def _last_reading(store: DocumentStore) -> Reading | None:
    stored = await store.get(CLOCKS, boot_id() or _UNNAMED)
    if stored is None:
        latest = await store.find(CLOCKS, Query(sort=Sort("time", descending=True), limit=1))
        if not latest:
            return None
        stored = latest[0]
    return _reading(stored)


def _reading(stored: Stored) -> Reading:
    body = stored.body
    time = datetime.fromisoformat(body["time"])
    return Reading(str(body["boot"]), float(body["elapsedS"]), time, float(body.get("offS", "inf")))


async def keep_reading(store: DocumentStore, reading: Reading) -> None:
    """Store the time; remove those of boots long ago."""
    document_id = reading.boot or _UNNAMED
    body = {"boot": reading.boot, "elapsedS": reading.elapsed_s, "time": rfc3339(reading.time), "offS": reading.off_s}
    try:
        await store.update(CLOCKS, document_id, body)
    except RevisionConflict:
        try:
            await store.insert(CLOCKS, document_id, body)
        except AlreadyExists:  # another process was faster
            return
        await store.delete_many(CLOCKS, Compare("time", Op.LT, [rfc3339(reading.time - _KEPT)]))
