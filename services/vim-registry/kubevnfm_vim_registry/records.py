"""The VIM records in the document store: their collection, indexes and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_events import Envelope, Event
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, AnyOf, Compare, Filter, Index, Op, Query, Stored, by
from kubevnfm_worker import Outbox

from kubevnfm_vim_registry.domain.errors import NameTaken, SecondDefault, VimUnknown
from kubevnfm_vim_registry.domain.record import VimRecord

COLLECTION: Final = "vims"
SOURCE: Final = "/kubevnfm/vim-registry"
_INDEXES: Final = (
    Index(["tenant_id", "name"], unique=True),
    Index(["default_of"], unique=True),
    Index(["owner"]),
)


@dataclass(frozen=True)
class Kept:
    """A record and the revision it was read at."""

    vim: VimRecord
    revision: int


class VimRecords:
    """Reads and writes records; the unique indexes decide races about names and the default."""

    def __init__(self, store: DocumentStore, outbox: Outbox, ring: KeyRing, clock: Clock) -> None:
        self._store, self._outbox, self._ring, self._clock = store, outbox, ring, clock

    async def prepare(self) -> None:
        """Make the indexes."""
        await self._store.ensure_indexes(COLLECTION, _INDEXES)

    def now(self) -> str:
        """Return the present moment as records write it."""
        return rfc3339(self._clock.now())

    async def get(self, vim_id: str) -> Kept:
        """Return one record. Raises VimUnknown."""
        kept = await self.find_one(vim_id)
        if kept is None:
            raise VimUnknown(f"there is no VIM {vim_id}")
        return kept

    async def find_one(self, vim_id: str) -> Kept | None:
        """Return one record, or None."""
        stored = await self._store.get(COLLECTION, vim_id)
        return None if stored is None else _kept(stored)

    async def all(self) -> Sequence[Kept]:
        """Return every record."""
        return [_kept(stored) for stored in await self._store.find(COLLECTION, Query())]

    async def find(self, filters: Mapping[str, Sequence[str | bool]]) -> Sequence[VimRecord]:
        """Return the records that equal one of the values for each name, by name."""
        conditions: list[Filter] = [
            AnyOf([Compare(name, Op.EQ, [value]) for value in values]) for name, values in filters.items()
        ]
        found = await self._store.find(COLLECTION, Query(AllOf(conditions)))
        return sorted((_kept(stored).vim for stored in found), key=lambda vim: vim.name)

    async def named(self, tenant_id: str, name: str) -> Kept | None:
        """Return the tenant's record of that name."""
        found = await self._store.find(COLLECTION, Query(by(tenant_id=tenant_id, name=name), limit=1))
        return _kept(found[0]) if found else None

    async def owned_by(self, owner: str, name: str | None) -> Sequence[Kept]:
        """Return the records of an instance's clusters."""
        wanted = by(owner=owner) if name is None else by(owner=owner, name=name)
        return [_kept(stored) for stored in await self._store.find(COLLECTION, Query(wanted))]

    async def insert(self, vim: VimRecord, events: Sequence[Event] = ()) -> None:
        """Store a new record. Raises NameTaken, SecondDefault, AlreadyExists (the id)."""
        try:
            await self._outbox.insert(COLLECTION, vim.id, vim.document(self._ring), events=_told(vim.id, events))
        except AlreadyExists as error:
            await self._explain(vim, error)

    async def replace(self, kept: Kept, vim: VimRecord, events: Sequence[Event] = ()) -> None:
        """Write the record in place of ``kept``. Raises NameTaken, SecondDefault, RevisionConflict."""
        try:
            await self._outbox.replace(
                COLLECTION, vim.id, vim.document(self._ring), if_revision=kept.revision, events=_told(vim.id, events)
            )
        except AlreadyExists as error:
            await self._explain(vim, error)

    async def delete(self, vim_id: str, events: Sequence[Event] = ()) -> None:
        """Remove a record, if it is there."""
        await self._outbox.delete(COLLECTION, vim_id, events=_told(vim_id, events))

    async def take_default_from(self, tenant_id: str, *, heir: str) -> None:
        """Make the tenant's default VIM an ordinary one, unless it is ``heir``."""
        for stored in await self._store.find(COLLECTION, Query(by(default_of=tenant_id))):
            if stored.id != heir:
                try:
                    await self._store.update(
                        COLLECTION,
                        stored.id,
                        {"is_default": False},
                        unset=["default_of"],
                        if_revision=stored.revision,
                    )
                except RevisionConflict:
                    continue  # it changed under us: if it is still the default, the heir's write says so

    async def _explain(self, vim: VimRecord, error: AlreadyExists) -> None:
        namesake = await self.named(vim.tenant_id, vim.name)
        if namesake is not None and namesake.vim.id != vim.id:
            raise NameTaken(f"the tenant has a VIM named {vim.name} already ({namesake.vim.id})") from error
        if vim.is_default:
            for other in await self.find({"default_of": [vim.tenant_id]}):
                if other.id != vim.id:
                    raise SecondDefault(f"{other.name} ({other.id}) is the default VIM already") from error
        raise error


def _kept(stored: Stored) -> Kept:
    body: dict[str, Any] = {**stored.body, "id": stored.id}
    return Kept(VimRecord.model_validate(body), stored.revision)


def _told(vim_id: str, events: Sequence[Event]) -> list[Envelope[Event]]:
    return [Envelope(event, source=SOURCE, subject=vim_id) for event in events]
