"""Writes documents together with the messages that they cause, and publishes these at once."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_events import Envelope, Message
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Filter, Stored

from kubevnfm_worker.relay import OutboxRelay, outgoing


class Outbox:
    """The writing methods of a DocumentStore, with ``events`` (events or commands) in the same atomic write.

    Returns and raises as the store's methods do; if a write fails nothing is published. The collections must be among
    the relay's: only those are swept for messages that a crash left unpublished.
    """

    def __init__(self, store: DocumentStore, relay: OutboxRelay, key_ring: KeyRing) -> None:
        self._store, self._relay, self._ring = store, relay, key_ring

    async def insert(
        self, collection: str, id: str, body: JsonMapping, *, events: Sequence[Envelope[Message]] = ()
    ) -> Stored:
        """Store a new document. Raises AlreadyExists."""
        with self._relay.writing(events):
            stored = await self._store.insert(
                collection, id, body, outbox=[outgoing(event, self._ring) for event in events]
            )
            self._relay.kick(collection, id, events)
        return stored

    async def replace(
        self,
        collection: str,
        id: str,
        body: JsonMapping,
        *,
        if_revision: int,
        events: Sequence[Envelope[Message]] = (),
    ) -> Stored:
        """Write the whole body if the revision still holds. Raises RevisionConflict."""
        with self._relay.writing(events):
            stored = await self._store.replace(
                collection, id, body, if_revision=if_revision, outbox=[outgoing(event, self._ring) for event in events]
            )
            self._relay.kick(collection, id, events)
        return stored

    async def update(
        self,
        collection: str,
        id: str,
        fields: JsonMapping,
        *,
        unset: Sequence[str] = (),
        if_revision: int | None = None,
        where: Filter | None = None,
        events: Sequence[Envelope[Message]] = (),
    ) -> Stored:
        """Set and remove fields if revision and ``where`` hold. Raises RevisionConflict."""
        with self._relay.writing(events):
            stored = await self._store.update(
                collection,
                id,
                fields,
                unset=unset,
                if_revision=if_revision,
                where=where,
                outbox=[outgoing(event, self._ring) for event in events],
            )
            self._relay.kick(collection, id, events)
        return stored

    async def delete(
        self,
        collection: str,
        id: str,
        *,
        if_revision: int | None = None,
        events: Sequence[Envelope[Message]] = (),
    ) -> bool:
        """Remove the document; its events are stored until they are published (a document that is missing has none). Raises RevisionConflict."""
        with self._relay.writing(events):
            was_there = await self._store.delete(
                collection, id, if_revision=if_revision, outbox=[outgoing(event, self._ring) for event in events]
            )
            if was_there:
                self._relay.kick(collection, id, events)
        return was_there
