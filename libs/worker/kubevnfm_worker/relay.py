"""Publishes the messages in documents' outboxes and then removes them; also those that a crash left behind."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

import structlog
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, InvalidMessage, Message, from_document
from kubevnfm_kit.clock import Clock, SteadyClock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.outages import unless_said
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, Outgoing, PendingOutbox, StoreUnavailable

log = structlog.get_logger()

_CLEAR_AFTER_S = 1.0
"""Messages that are confirmed within this time are removed together: those of one collection in one call. After a crash
they are published once more, so the time is short; and other replicas must not find them first (``settle_s``)."""
_CLEAR_AT = 50
"""So many are removed at once: a sweep of another replica reads a page of 100 documents and must find older ones in it."""

_SOON_S = 1.0
"""Between the sweeps of a process that has just started."""


def outgoing(envelope: Envelope[Message], ring: KeyRing) -> Outgoing:
    """Return the envelope in the form of a document's outbox; secrets are sealed."""
    return Outgoing(id=envelope.id, document=envelope.document(ring))


class OutboxRelay:
    """Publishes stored messages: at once after a write (``kick``), and by sweeps after a crash.

    Each message is published by a task of its own, started in the order of the document: in process a publish lasts
    as long as its handler, and must not delay the next one. Messages that are unpublished when the relay closes stay
    in their documents for the next sweep, here or in another replica. An async context manager.
    """

    def __init__(
        self,
        store: DocumentStore,
        bus: MessageBus,
        *,
        collections: Sequence[str],
        sweep_s: float = 30.0,
        settle_s: float = 3.0,
        drain_s: float = 1.0,
        clock: Clock | None = None,
        owners: Owners | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """``settle_s``: younger messages are left to the replica that wrote them, which needs 1 s to remove those that it has
        published, unless ``owners`` know that it has ended; ``drain_s``: how long closing waits.
        """
        self._store, self._bus = store, bus
        self._collections = tuple(dict.fromkeys(collections))
        self._sweep_s, self._settle_s, self._drain_s = sweep_s, settle_s, drain_s
        self._clock, self._owners = clock or SteadyClock(), owners or Owners()
        self._began_at = self._clock.now()
        self._publishing: dict[str, asyncio.Task[None]] = {}
        self._published: dict[str, tuple[str, str]] = {}
        """Collection and document by the id of the message; the next call removes them."""
        self._writing: set[str] = set()
        """Being stored: their writer kicks them next."""
        self._uncleared: set[str] = set()
        """Published, and still in their documents."""
        self._looking = asyncio.Lock()
        """Held while outboxes are read and while they are cleared: a message cleared meanwhile must not look new."""
        self._clearing: asyncio.Task[None] | None = None
        self._is_due = asyncio.Event()
        """Set when published messages are removed without further waiting."""
        self._sweeping: asyncio.Task[None] | None = None
        self._unreadable: set[str] = set()
        metrics = metrics or Metrics()
        self._late = metrics.gauge(
            "kubevnfm_outbox_messages", "Stored messages that were not published at once.", ["collection"]
        )
        self._oldest = metrics.gauge("kubevnfm_outbox_oldest_seconds", "Age of the oldest of them.", ["collection"])

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def start(self) -> None:
        """Start sweeping."""
        self._sweeping = asyncio.create_task(self._sweep_forever(), name="outbox-sweep")

    async def close(self) -> None:
        """Stop sweeping, wait up to ``drain_s`` for publishes under way, and remove published messages."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        if publishing := list(self._publishing.values()):
            _, unfinished = await asyncio.wait(publishing, timeout=self._drain_s)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        # Last: a confirmed message that stays in its document would be published again by the next process.
        if self._clearing is not None:
            self._is_due.set()
            await self._clearing

    @contextmanager
    def writing(self, envelopes: Sequence[Envelope[Message]]) -> Iterator[None]:
        """Within the block, which stores and kicks them, sweeps here leave these messages alone."""
        ids = [envelope.id for envelope in envelopes]
        self._writing.update(ids)
        try:
            yield
        finally:
            self._writing.difference_update(ids)

    def kick(self, collection: str, id: str, envelopes: Sequence[Envelope[Message]]) -> None:
        """Publish in the background the messages just stored in the outbox of ``collection``'s document ``id``."""
        for envelope in envelopes:
            # A sweep and the writer can find the same message; consumers drop doubles, but one publish is cheaper.
            if envelope.id in self._publishing:
                continue
            task = asyncio.create_task(self._publish(collection, id, envelope), name=f"publish-{envelope.type}")
            self._publishing[envelope.id] = task
            task.add_done_callback(partial(self._forget_task, envelope.id))

    def _is_known(self, message_id: str) -> bool:
        """Return whether the message is being stored, published or removed from its document in this process."""
        return message_id in self._writing or message_id in self._publishing or message_id in self._uncleared

    def _forget_task(self, message_id: str, _: asyncio.Task[None]) -> None:
        self._publishing.pop(message_id, None)

    async def idle(self) -> None:
        """Return when everything that was kicked is published and removed from its documents: for tests and tools."""
        while self._publishing or self._clearing:
            if self._publishing:
                await asyncio.wait([*self._publishing.values()])
            elif self._clearing:
                self._is_due.set()
                await asyncio.wait([self._clearing])

    async def sweep(self) -> bool:
        """Publish messages that are older than ``settle_s`` and are not being published here.

        Returns whether the next sweep should be soon: an old message is being stored here once more. That write fails,
        as the message exists already, so its writer will not publish it; only a sweep can.
        """
        is_stored_again = False
        for collection in self._collections:
            # Documents whose messages are on their way here come back from every query until they are confirmed, so
            # they must not fill the page.
            known = len(self._publishing) + len(self._uncleared)
            async with self._looking:
                pending = await self._store.pending_outbox(collection, limit=100 + known)
                self._measure(collection, pending)
                for document in pending:
                    is_stored_again = is_stored_again or any(
                        message.id in self._writing and self._is_settled(message) for message in document.messages
                    )
                    self.kick(collection, document.id, [*self._left_behind(document.messages)])
        return is_stored_again

    def _measure(self, collection: str, pending: Sequence[PendingOutbox]) -> None:
        """Show how many messages wait, and since when."""
        now = self._clock.now()
        written = [at for each in pending for message in each.messages if (at := _written_at(message)) is not None]
        ages = [age_s for at in written if (age_s := (now - at).total_seconds()) >= self._settle_s]
        self._late.series(collection).set(len(ages))
        self._oldest.series(collection).set(max(ages, default=0.0))

    def _left_behind(self, messages: Sequence[Outgoing]) -> Sequence[Envelope[Message]]:
        left: list[Envelope[Message]] = []
        for message in messages:
            if self._is_known(message.id) or message.id in self._unreadable or not self._is_settled(message):
                continue
            try:
                left.append(from_document(message.document))
            except InvalidMessage as error:
                # Written by a newer or broken version: it stays there for a person to find.
                self._unreadable.add(message.id)
                log.error("outbox_message_unreadable", message_id=message.id, reason=str(error))
        return left

    def _is_settled(self, message: Outgoing) -> bool:
        if (written := _written_at(message)) is None:
            # Without a readable time its age is unknown; to wait for it to settle would be to wait for ever.
            return True
        if self._owners.is_alone and written < self._began_at:
            return True
        # One that is far ahead was written before the clock was set back.
        return abs(self._clock.now() - written) >= timedelta(seconds=self._settle_s)

    async def _publish(self, collection: str, id: str, envelope: Envelope[Message]) -> None:
        try:
            await self._bus.publish(envelope)
        # Not an error of the writer: the message is stored, and a sweep publishes it later.
        except VnfmError as error:
            unless_said(error).warning(
                "publish_postponed", message_id=envelope.id, type=envelope.type, reason=str(error)
            )
            return
        self._uncleared.add(envelope.id)
        self._published[envelope.id] = collection, id
        if len(self._published) >= _CLEAR_AT:
            self._is_due.set()
        if self._clearing is None:
            self._clearing = asyncio.create_task(self._clear(), name="outbox-clear")

    async def _clear(self) -> None:
        try:
            while self._published:
                # Wait for further confirms, so that one call removes many messages.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_due.wait(), _CLEAR_AFTER_S)
                self._is_due.clear()
                async with self._looking:
                    await self._clear_published()
        finally:
            self._clearing = None

    async def _clear_published(self) -> None:
        published, self._published = self._published, {}
        by_collection: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for message_id, (collection, document_id) in published.items():
            by_collection[collection][document_id].append(message_id)
        results: list[Any] = await asyncio.gather(
            *(self._store.clear_outbox(collection, by_document) for collection, by_document in by_collection.items()),
            return_exceptions=True,
        )
        # If it failed they stay in their documents, and a sweep publishes them once more: at least once, never zero times.
        self._uncleared.difference_update(published)
        for result in results:
            if isinstance(result, StoreUnavailable):
                log.debug("outbox_not_cleared", reason=str(result))
            elif isinstance(result, BaseException):
                raise result

    async def _sweep_forever(self) -> None:
        # Messages of a killed process are often too young for the first sweep: they must not wait for a whole interval.
        loop = asyncio.get_running_loop()
        young_until = loop.time() + self._settle_s
        while True:
            pause_s = _SOON_S if loop.time() < young_until else self._sweep_s
            try:
                if await self.sweep():
                    pause_s = self._settle_s
            except StoreUnavailable as error:
                log.debug("outbox_sweep_postponed", reason=str(error))
            await asyncio.sleep(min(pause_s, self._sweep_s))


def _written_at(message: Outgoing) -> datetime | None:
    try:
        return datetime.fromisoformat(str(message.document["time"]))
    except (KeyError, ValueError):
        return None
