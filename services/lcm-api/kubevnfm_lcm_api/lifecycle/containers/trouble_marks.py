"""Marks the instances whose pods or virtual machines have a problem, so that lists find them.

infra-k8s reports when the trouble of a pod begins, has another reason, or ends. Each report is only the reason to read the ill ones of
its instance from the inventory: reports may be repeated, late and in another order. A mark is a document of its own, as each write of an
instance changes its entity tag; it counts while the instance is INSTANTIATED. Nothing that is only in memory is needed: rounds compare the marks with the inventory. They also find
pods that have been on their way for too long, about which there is no report.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.inventory import Inventory, InventoryResource
from kubevnfm_clients.multicloud.object_health import health_of
from kubevnfm_events import Envelope
from kubevnfm_events.inventory import TroubleChanged
from kubevnfm_events.lcm import InstanceTroubled
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.outages import unless_said
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Query, Sort, Stored
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE

log = structlog.get_logger()

COLLECTION: Final = "vnf_troubles"
"""By the id of the instance: `text`, and `since` when."""
_BEAT_S: Final = 0.2
_REST_S: Final = 3.0
"""From one look at an instance to the next: one that flaps is written no more often."""
_AWAY_S: Final = 5.0
_MOST_DUE: Final = 10_000
"""Instances that wait for a look; a round makes good what is left out."""
_AT_ONCE: Final = 8
_PAGE: Final = 500
_MOST_PAGES: Final = 20
"""The most that one reading of the inventory takes."""


class TroubleMarks:
    """Follows the reports, and compares in rounds."""

    def __init__(self, *, store: DocumentStore, outbox: Outbox, inventory: Inventory, clock: Clock) -> None:
        self._store, self._outbox, self._inventory, self._clock = store, outbox, inventory, clock
        self._due: dict[str, float] = {}
        """When to look at an instance."""
        self._rests: dict[str, float] = {}
        """Until when an instance is left alone."""
        self._is_due = asyncio.Event()

    async def follow(self, delivery: Delivery) -> Verdict:
        """Have the instance of a report looked at. It returns at once: in one process, its publisher waits for that."""
        event = delivery.envelope.data
        assert isinstance(event, TroubleChanged)
        now = asyncio.get_running_loop().time()
        if len(self._due) < _MOST_DUE:
            self._due.setdefault(event.vnf_instance_id, max(now + _BEAT_S, self._rests.get(event.vnf_instance_id, now)))
            self._is_due.set()
        return Ack()

    async def watch_due(self) -> None:
        """Look at instances when they are due, until cancelled; while there are none, nothing is done."""
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            while self._due:
                await asyncio.sleep(_BEAT_S)
                now = asyncio.get_running_loop().time()
                self._rests = {key: until for key, until in self._rests.items() if until > now}
                due = [key for key, at in self._due.items() if at <= now]
                for start in range(0, len(due), _AT_ONCE):
                    await asyncio.gather(*(self._look_at_due(each) for each in due[start : start + _AT_ONCE]))

    async def look(self) -> None:
        """Compare all marks with the inventory. Raises StoreUnavailable, OutsideUnavailable."""
        ill: dict[str, list[InventoryResource]] = {}
        async for each in self._ill({}):
            ill.setdefault(each.vnf_id, []).append(each)
        wanted = {key: mark for key, found in ill.items() if (mark := self._mark_of(key, found)) is not None}
        marked = {each.id: each async for each in self._marks()}
        for key in sorted(wanted.keys() | marked.keys()):
            if not _is_same(marked.get(key), wanted.get(key)):
                await self._look_at(key)

    async def _look_at_due(self, instance_id: str) -> None:
        self._due.pop(instance_id, None)
        now = asyncio.get_running_loop().time()
        self._rests[instance_id] = now + _REST_S
        try:
            await self._look_at(instance_id)
        except VnfmError as error:
            unless_said(error).warning("trouble_not_marked", vnf_instance_id=instance_id, reason=str(error))
            self._due.setdefault(instance_id, now + _AWAY_S)

    async def _look_at(self, instance_id: str) -> None:
        """Write the mark of an instance if it is not as the inventory says."""
        wanted = self._mark_of(instance_id, [each async for each in self._ill({"vnf_id": instance_id})])
        stored = await self._store.get(COLLECTION, instance_id)
        if _is_same(stored, wanted):
            return
        text = "" if wanted is None else str(wanted["text"])
        troubled = InstanceTroubled(vnf_instance_id=instance_id, text=text)
        news = [Envelope(data=troubled, source=SOURCE, subject=instance_id)]
        try:
            if stored is None and wanted is not None:
                await self._outbox.insert(COLLECTION, instance_id, wanted, events=news)
            elif stored is not None and wanted is not None:
                await self._outbox.replace(COLLECTION, instance_id, wanted, if_revision=stored.revision, events=news)
            elif stored is not None:
                await self._outbox.delete(COLLECTION, instance_id, if_revision=stored.revision, events=news)
        except (AlreadyExists, RevisionConflict):
            # Another process has looked too, and one of the two later than the other.
            self._due.setdefault(instance_id, asyncio.get_running_loop().time() + _REST_S)
            self._is_due.set()
            return
        log.info("trouble_marked", vnf_instance_id=instance_id, text=text)

    async def _ill(self, filters: Mapping[str, str]) -> AsyncIterator[InventoryResource]:
        after: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._inventory.find({**filters, "ill": "true"}, limit=_PAGE, after=after)
            for each in page.items:
                yield each
            after = page.next_after
            if after is None:
                return

    async def _marks(self) -> AsyncIterator[Stored]:
        after: str | None = None
        while page := await marks_after(self._store, after, limit=_PAGE):
            for each in page:
                yield each
            after = page[-1].id

    def _mark_of(self, instance_id: str, found: Iterable[InventoryResource]) -> JsonObject | None:
        """Return the mark: about the one that has had its problem for the longest time; None if none has one."""
        now = self._clock.now()
        first = min((each for each in found if health_of(each, now)[0] == "problem"), key=_age, default=None)
        if first is None:
            return None
        text = f"{first.kind} {first.name}: {health_of(first, now)[1]}"
        return {"id": instance_id, "text": text, "since": first.changed_at}


async def marks_after(store: DocumentStore, after: str | None, *, limit: int) -> list[Stored]:
    """Return marks by id, those behind ``after``."""
    return [*await store.find(COLLECTION, Query(Compare("id", Op.GT, [after or ""]), sort=Sort("id"), limit=limit))]


def _age(each: InventoryResource) -> tuple[datetime, str]:
    return datetime.fromisoformat(each.changed_at), each.id


def _is_same(stored: Stored | None, wanted: JsonObject | None) -> bool:
    return (None if stored is None else stored.body["text"]) == (None if wanted is None else wanted["text"])
