"""A store with hooks around each write of a document."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import Filter, Stored
from kubevnfm_store.sqlite.store import SqliteStore


class WatchedStore(SqliteStore):
    """Calls `before_write` and `after_write` around insert, replace, update and delete."""

    def before_write(self) -> None:
        """Called before a write, which it prevents by an error."""

    def after_write(self, collection: str, id: str, body: JsonMapping | None, outbox: Sequence[Outgoing]) -> None:
        """Called after a write with the document as it is now; ``body`` is None if it was deleted."""

    async def insert(
        self,
        collection: str,
        id: str,
        body: JsonMapping,
        *,
        outbox: Sequence[Outgoing] = (),
        may_wait: bool = False,
    ) -> Stored:
        self.before_write()
        stored = await super().insert(collection, id, body, outbox=outbox, may_wait=may_wait)
        self.after_write(collection, id, stored.body, outbox)
        return stored

    async def replace(
        self, collection: str, id: str, body: JsonMapping, *, if_revision: int, outbox: Sequence[Outgoing] = ()
    ) -> Stored:
        self.before_write()
        stored = await super().replace(collection, id, body, if_revision=if_revision, outbox=outbox)
        self.after_write(collection, id, stored.body, outbox)
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
        outbox: Sequence[Outgoing] = (),
    ) -> Stored:
        self.before_write()
        stored = await super().update(
            collection, id, fields, unset=unset, if_revision=if_revision, where=where, outbox=outbox
        )
        self.after_write(collection, id, stored.body, outbox)
        return stored

    async def delete(
        self, collection: str, id: str, *, if_revision: int | None = None, outbox: Sequence[Outgoing] = ()
    ) -> bool:
        self.before_write()
        was_there = await super().delete(collection, id, if_revision=if_revision, outbox=outbox)
        self.after_write(collection, id, None, outbox)
        return was_there
