"""A document store whose writes are live spans; a process that records none does without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubevnfm_kit import live_spans
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.live_spans import LiveSpan

from kubevnfm_store.port import DocumentStore, Outgoing, PendingOutbox, Writes
from kubevnfm_store.query import Filter, Index, Query, Stored


def measured(store: DocumentStore, system: str) -> DocumentStore:
    """Return the store with its writes measured, if live spans are recorded. ``system``: the kind of database."""
    return MeasuredStore(store, system) if live_spans.is_on() else store


@dataclass(frozen=True)
class MeasuredStore:
    """Collection and operation of each write are the span's facts; ids and bodies are not."""

    inner: DocumentStore
    system: str

    async def get(self, collection: str, id: str) -> Stored | None:
        return await self.inner.get(collection, id)

    async def get_many(self, collection: str, ids: Sequence[str]) -> Sequence[Stored]:
        return await self.inner.get_many(collection, ids)

    async def insert(
        self,
        collection: str,
        id: str,
        body: JsonMapping,
        *,
        outbox: Sequence[Outgoing] = (),
        may_wait: bool = False,
    ) -> Stored:
        with self._span("insert", collection):
            return await self.inner.insert(collection, id, body, outbox=outbox, may_wait=may_wait)

    async def replace(
        self, collection: str, id: str, body: JsonMapping, *, if_revision: int, outbox: Sequence[Outgoing] = ()
    ) -> Stored:
        with self._span("replace", collection):
            return await self.inner.replace(collection, id, body, if_revision=if_revision, outbox=outbox)

    async def update(
        self,
        collection: str,
        id: str,
        fields: JsonMapping,
        *,
        unset: Sequence[str] = (),
        if_revision: int | None = None,
        where: Filter | None = None,
        outbox: Sequence[Outgoing] = (),
    ) -> Stored:
        with self._span("update", collection):
            return await self.inner.update(
                collection, id, fields, unset=unset, if_revision=if_revision, where=where, outbox=outbox
            )

    async def delete(
        self, collection: str, id: str, *, if_revision: int | None = None, outbox: Sequence[Outgoing] = ()
    ) -> bool:
        with self._span("delete", collection):
            return await self.inner.delete(collection, id, if_revision=if_revision, outbox=outbox)

    async def delete_many(self, collection: str, filter: Filter) -> int:
        with self._span("delete_many", collection):
            return await self.inner.delete_many(collection, filter)

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        return await self.inner.find(collection, query)

    async def count(self, collection: str, filter: Filter, *, limit: int) -> int:
        return await self.inner.count(collection, filter, limit=limit)

    async def ensure_indexes(self, collection: str, indexes: Sequence[Index]) -> None:
        await self.inner.ensure_indexes(collection, indexes)

    async def pending_outbox(self, collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        return await self.inner.pending_outbox(collection, limit=limit)

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        # Not measured: one call removes the messages of several operations.
        await self.inner.clear_outbox(collection, published)

    def writes_to(self, collection: str) -> Writes:
        return self.inner.writes_to(collection)

    async def is_ready(self) -> bool:
        return await self.inner.is_ready()

    @property
    def takes_writes(self) -> bool:
        return self.inner.takes_writes

    def _span(self, operation: str, collection: str) -> LiveSpan:
        facts: dict[str, live_spans.Value] = {
            "db.system.name": self.system,
            "db.operation.name": operation,
            "db.collection.name": collection,
        }
        return live_spans.span(f"{operation} {collection}", "client", facts)
