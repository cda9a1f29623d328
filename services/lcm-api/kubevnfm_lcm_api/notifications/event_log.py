"""The events of the last hour, stored so that a watcher that was away gets the events that it missed (`event_feed`).

Events that arrive during a write go into the next write together, as one document.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import structlog
from cachetools import LRUCache
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.request_ids import for_all
from kubevnfm_store.port import DocumentStore, StoreUnavailable
from kubevnfm_store.query import Compare, Op, Query, Sort, Stored

log = structlog.get_logger()

COLLECTION: Final = "event_log"
RETENTION: Final = timedelta(hours=1)
_MOST_AT_ONCE: Final = 200
"""The events in one document: far below the size limit of any database."""
_GATHER_S: Final = 0.03
"""How long events are collected for one write: they arrive in groups, and state changes must not wait for the log."""
_STORE_PAUSE_S: Final = 2.0
_SKEW: Final = timedelta(seconds=2)
"""The largest difference between the times at which two gateways log the same event."""
_PAGE: Final = 20
_SINCE: Final = "since/"


@dataclass(frozen=True)
class LoggedEvent:
    """An event as watchers receive it."""

    id: str
    key: str
    """Its routing key."""
    subject: str
    operation_id: str
    text: str
    """JSON, secrets masked."""

    @property
    def time(self) -> str:
        """When it happened."""
        time: str = json.loads(self.text)["time"]
        return time

    @classmethod
    def from_envelope(cls, envelope: Envelope[Message]) -> LoggedEvent:
        """Return the event in an envelope, secrets masked."""
        known = _RECENT.get(envelope.id)
        if known is not None and known[0] is envelope:
            return known[1]
        body = {
            "id": envelope.id,
            "type": envelope.type,
            "time": rfc3339(envelope.time),
            "subject": envelope.subject,
            "operationid": envelope.operationid,
            "stepid": envelope.stepid,
            "attempt": envelope.attempt,
            "data": envelope.data.model_dump(mode="json", exclude_none=True),
        }
        key = type(envelope.data).routing_key()
        text = json.dumps(body, separators=(",", ":"))
        event = cls(envelope.id, key, envelope.subject, envelope.operationid, text)
        _RECENT[envelope.id] = envelope, event
        return event


@dataclass(frozen=True)
class Replay:
    """The events after a place in the stream."""

    since: datetime
    """Events that a gateway received before are not after the place."""
    events: AsyncIterator[LoggedEvent]


_RECENT: Final[LRUCache[str, tuple[Envelope[Message], LoggedEvent]]] = LRUCache(32)
"""In one process the log and the feed get the same envelope, one after the other."""


class EventLog:
    """Writes and reads the log. It writes until the bus, which delivers the events, has closed: there is no `close`."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._me, self._numbers = new_id(), count(1)
        self._waiting: list[tuple[LoggedEvent, asyncio.Future[Verdict]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def store_event(self, delivery: Delivery) -> Verdict:
        """Store one event."""
        verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.append((LoggedEvent.from_envelope(delivery.envelope), verdict))
        if self._writing is None:
            self._writing = for_all(self._write(), name="event-log")
        return await verdict

    async def _write(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(_GATHER_S)
                batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
                verdict: Verdict = Ack()
                try:
                    await self._insert([event for event, _ in batch])
                except StoreUnavailable as error:
                    log.debug("events_not_logged", reason=str(error))
                    verdict = Again(_STORE_PAUSE_S)
                for _, answer in batch:
                    # A delivery may have been cancelled during the write.
                    if not answer.done():
                        answer.set_result(verdict)
        finally:
            self._writing = None

    async def _insert(self, batch: list[LoggedEvent]) -> None:
        at = rfc3339(self._clock.now())
        body = {
            "at": at,
            "writer": self._me,
            # Padded, because the database sorts the number as text.
            "order": f"{at}/{self._me}/{next(self._numbers):012}",
            "ids": [event.id for event in batch],
            "events": [vars(event) for event in batch],
        }
        await self._store.insert(COLLECTION, new_id(), body)

    def moment(self) -> str:
        """Return this moment as a place in the stream, for a gateway that has received no event yet."""
        return f"{_SINCE}{rfc3339(self._clock.now())}"

    async def after(self, place: str) -> Replay | None:
        """Return the events after a place: the id of an event, or a `moment`; None if what was then is no longer stored.

        They are in order as far as one gateway has logged them. An event that another gateway has logged at about the
        same time may be returned although the watcher has seen it.
        """
        if place.startswith(_SINCE):
            return self._since(place.removeprefix(_SINCE))
        found = await self._store.find(COLLECTION, Query(Compare("ids", Op.EQ, [place]), limit=1))
        if not found:
            return None
        body = found[0].body
        event = LoggedEvent(**body["events"][body["ids"].index(place)])
        # It may have waited for the database.
        happened = min(body["at"], event.time)
        return Replay(datetime.fromisoformat(happened) - _SKEW, self._following(found[0], place))

    def _since(self, moment: str) -> Replay | None:
        try:
            since = datetime.fromisoformat(moment)
            is_stored = self._clock.now() - since < RETENTION
        except (ValueError, TypeError):  # not a time, or one without a zone
            return None
        return Replay(since - _SKEW, self._from(since)) if is_stored else None

    async def _following(self, known: Stored, event_id: str) -> AsyncIterator[LoggedEvent]:
        place = known.body["ids"].index(event_id)
        for event in known.body["events"][place + 1 :]:
            yield LoggedEvent(**event)
        async for event in self._from(datetime.fromisoformat(known.body["at"]), known.body):
            yield event

    async def _from(self, moment: datetime, known: JsonMapping | None = None) -> AsyncIterator[LoggedEvent]:
        """Yield the events that were logged since about a moment, but none up to the known document of its writer."""
        start = rfc3339(moment - _SKEW)
        after: tuple[str, str] | None = None
        while True:
            query = Query(Compare("order", Op.GTE, [start]), sort=Sort("order"), after=after, limit=_PAGE)
            page = await self._store.find(COLLECTION, query)
            for stored in page:
                if known is None or not _is_before(stored.body, known):
                    for event in stored.body["events"]:
                        yield LoggedEvent(**event)
            if len(page) < _PAGE:
                return
            after = (page[-1].body["order"], page[-1].id)

    async def remove_old(self) -> None:
        """Remove old events. Raises StoreUnavailable."""
        before = rfc3339(self._clock.now() - RETENTION)
        await self._store.delete_many(COLLECTION, Compare("at", Op.LT, [before]))


def _is_before(one: JsonMapping, known: JsonMapping) -> bool:
    """Return whether a document is the known one, or an earlier one of the same writer."""
    is_before: bool = one["writer"] == known["writer"] and one["order"] <= known["order"]
    return is_before
