"""Keeps the time of a service's steady clock in its database, so that the next process goes on from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_kit.clock import Clock, Reading, SteadyClock, boot_id, rfc3339
from kubevnfm_kit.run import background, repeat
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Index, Op, Query, Sort

CLOCKS: Final = "clocks"
"""A document for each boot of each machine."""
_STORE_EVERY_S: Final = 60.0
_KEPT: Final = timedelta(days=30)
_UNNAMED: Final = "unknown"


@asynccontextmanager
async def steady_clock(store: DocumentStore, machine: Clock | None = None) -> AsyncIterator[SteadyClock]:
    """Yield a clock that goes on from the time that the database has. Raises StoreUnavailable at the start."""
    await store.ensure_indexes(CLOCKS, [Index(["time"])])
    clock = SteadyClock(machine, since=await _last_reading(store))
    async with background(steady_clock=repeat(lambda: keep_reading(store, clock.reading()), every_s=_STORE_EVERY_S)):
        yield clock


async def _last_reading(store: DocumentStore) -> Reading | None:
    stored = await store.get(CLOCKS, boot_id() or _UNNAMED)
    if stored is None:
        latest = await store.find(CLOCKS, Query(sort=Sort("time", descending=True), limit=1))
        if not latest:
            return None
        stored = latest[0]
    body = stored.body
    return Reading(str(body["boot"]), float(body["elapsedS"]), datetime.fromisoformat(body["time"]))


async def keep_reading(store: DocumentStore, reading: Reading) -> None:
    """Store the time; remove those of boots long ago."""
    document_id = reading.boot or _UNNAMED
    body = {"boot": reading.boot, "elapsedS": reading.elapsed_s, "time": rfc3339(reading.time)}
    try:
        await store.update(CLOCKS, document_id, body)
    except RevisionConflict:
        try:
            await store.insert(CLOCKS, document_id, body)
        except AlreadyExists:  # another process was faster
            return
        await store.delete_many(CLOCKS, Compare("time", Op.LT, [rfc3339(reading.time - _KEPT)]))
