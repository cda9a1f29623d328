"""The DocumentStore port: JSON documents with a revision, queries, and the outbox inside the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_store.query import Filter, Index, Query, Stored


class AlreadyExists(VnfmError, code="already-exists", status=409):
    """A document with this id, or with these values of a unique index, already exists."""


class RevisionConflict(VnfmError, code="revision-conflict", status=409):
    """The document was deleted, or written by another caller since it was read: this caller lost the race."""


class StoreUnavailable(OutsideUnavailable, code="store-unavailable", title="Database unavailable", is_said=True):
    """The database does not answer."""


class UnsupportedServer(VnfmError, code="store-server-unsupported", title="Database server not supported", status=500):
    """The database server lacks what the adapter relies on."""


@dataclass(frozen=True)
class Outgoing:
    """A message that is stored with its document in one atomic write, until the relay has published it."""

    id: str
    document: JsonMapping
    """The CloudEvents JSON object, secrets sealed."""


@dataclass(frozen=True)
class PendingOutbox:
    """A document with messages that were not yet published, oldest first."""

    id: str
    messages: Sequence[Outgoing]


class Writes(Protocol):
    """Waits for writes to a collection."""

    async def following(self, *, look_s: float, longest_s: float) -> None:
        """Return when the collection was written since the last return, or since this was made.

        ``longest_s``: returns by then at the latest. ``look_s``: the same where other processes write, whose writes are not seen.
        """
        ...


class DocumentStore(Protocol):
    """The database as services use it. An adapter is an async context manager.

    Every method may raise StoreUnavailable; adapters first retry operations that are safe to repeat. Collections are
    created with their first document. Times are texts (RFC 3339).
    """

    async def get(self, collection: str, id: str) -> Stored | None:
        """Return the document."""
        ...

    async def get_many(self, collection: str, ids: Sequence[str]) -> Sequence[Stored]:
        """Return the documents that exist, in any order, by one query."""
        ...

    async def insert(
        self,
        collection: str,
        id: str,
        body: JsonMapping,
        *,
        outbox: Sequence[Outgoing] = (),
        may_wait: bool = False,
    ) -> Stored:
        """Store a new document at revision 1. Raises AlreadyExists.

        ``may_wait``: the caller is not in a hurry. An adapter that writes faster together may return up to 50 ms later.
        """
        ...

    async def replace(
        self, collection: str, id: str, body: JsonMapping, *, if_revision: int, outbox: Sequence[Outgoing] = ()
    ) -> Stored:
        """Write the whole body if the revision still holds; adds to the outbox. Raises RevisionConflict."""
        ...

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
        """Set the fields (by path) and remove those of ``unset``, atomically, if revision and ``where`` hold.

        Returns the document after the write. Raises RevisionConflict if the document is missing or a condition fails.
        """
        ...

    async def delete(
        self, collection: str, id: str, *, if_revision: int | None = None, outbox: Sequence[Outgoing] = ()
    ) -> bool:
        """Remove the document; return whether it was there. Messages of ``outbox`` stay stored until they are published.

        Raises RevisionConflict when it is there at another revision.
        """
        ...

    async def delete_many(self, collection: str, filter: Filter) -> int:
        """Remove all matching documents; return how many. Not for documents with messages in their outbox."""
        ...

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        """Return the documents of the query; filter, order, page and projection happen in the database."""
        ...

    async def count(self, collection: str, filter: Filter, *, limit: int) -> int:
        """Return the number of matching documents, counting up to ``limit`` only."""
        ...

    async def ensure_indexes(self, collection: str, indexes: Sequence[Index]) -> None:
        """Create the collection's indexes if they are missing."""
        ...

    async def pending_outbox(self, collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        """Return documents with unpublished messages (deleted ones included), by an index, never a scan."""
        ...

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        """Remove published messages (their ids by document) in as few calls as possible; revisions stay."""
        ...

    def writes_to(self, collection: str) -> Writes:
        """Return what waits for writes to a collection from now on."""
        ...

    async def is_ready(self) -> bool:
        """Return whether the database answers."""
        ...

    @property
    def takes_writes(self) -> bool:
        """Whether the last write was stored, as far as that is known without another one."""
        ...
