"""The VIM records in the document store: their collection, indexes and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_events import Envelope, Event
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.prefixes import with_id
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Filter, Index, Op, Query, Sort, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_vim_registry.domain.errors import NameTaken, SecondDefault, VimUnknown
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.domain.region import INVENTORY_TYPE, SUSPENDED_SINCE

COLLECTION: Final = "vims"
SOURCE: Final = "/kubevnfm/vim-registry"
# The unique indexes decide races between replicas about names and the default.
_INDEXES: Final = (
    Index(["tenant_id", "name"], unique=True),
    Index(["default_of"], unique=True),
    Index(["name"]),
    Index(["owner", "name"]),
    Index(["region/id"], unique=True),
    Index(["region/cloud_region"], sparse=True),
    Index([SUSPENDED_SINCE], sparse=True),
    Index([INVENTORY_TYPE], sparse=True),
)


@dataclass(frozen=True)
class StoredVim:
    """A record and its revision in the store."""

    vim: VimRecord
    revision: int


class VimRecords:
    """Reads and writes records."""

    def __init__(self, store: DocumentStore, outbox: Outbox, ring: KeyRing, clock: Clock) -> None:
        self._store, self._outbox, self._ring, self._clock = store, outbox, ring, clock

    async def prepare(self) -> None:
        """Make the indexes."""
        await self._store.ensure_indexes(COLLECTION, _INDEXES)

    def now(self) -> str:
        """Return the present time in the format of records."""
        return rfc3339(self._clock.now())

    async def get(self, vim_id: str) -> StoredVim:
        """Return one record. Raises VimUnknown."""
        stored = await self.find_one(vim_id)
        if stored is None:
            raise VimUnknown(f"no VIM has the id {vim_id}")
        return stored

    async def find_one(self, vim_id: str) -> StoredVim | None:
        """Return one record, or None."""
        stored = await self._store.get(COLLECTION, vim_id)
        return None if stored is None else _read(stored)

    async def all(self) -> Sequence[StoredVim]:
        """Return every record."""
        return [_read(stored) for stored in await self._store.find(COLLECTION, Query())]

    async def find(self, filters: Mapping[str, Sequence[str | bool]]) -> Sequence[VimRecord]:
        """Return the records that match one of the values of each filter, sorted by name."""
        conditions: list[Filter] = [
            AnyOf([Compare(name, Op.EQ, [value]) for value in values]) for name, values in filters.items()
        ]
        found = await self._store.find(COLLECTION, Query(AllOf(conditions)))
        return sorted((_read(stored).vim for stored in found), key=lambda vim: vim.name)

    async def page(self, wanted: Sequence[Filter], *, limit: int, after: tuple[str, str] | None) -> Sequence[VimRecord]:
        """Return records by name and id."""
        query = Query(AllOf(wanted), sort=Sort("name"), after=after, limit=limit)
        return [_read(stored).vim for stored in await self._store.find(COLLECTION, query)]

    async def with_id(self, prefix: str, *, limit: int) -> Sequence[VimRecord]:
        """Return records whose id begins so."""
        return [_read(stored).vim for stored in await with_id(self._store, COLLECTION, prefix, limit=limit)]

    async def find_by_name(self, tenant_id: str, name: str) -> StoredVim | None:
        """Return the tenant's record with this name."""
        found = await self._store.find(COLLECTION, Query(by(tenant_id=tenant_id, name=name), limit=1))
        return _read(found[0]) if found else None

    async def owned_by(self, owner: str, name: str | None) -> Sequence[StoredVim]:
        """Return the records of an instance's clusters."""
        wanted = by(owner=owner) if name is None else by(owner=owner, name=name)
        return [_read(stored) for stored in await self._store.find(COLLECTION, Query(wanted))]

    async def region(self, region_id: str) -> StoredVim | None:
        """Return the cloud region with this id."""
        found = await self._store.find(COLLECTION, Query(Compare("region/id", Op.EQ, [region_id]), limit=1))
        return _read(found[0]) if found else None

    async def regions(
        self, wanted: Sequence[Compare], *, limit: int, after: str | None = None, sort: str = "region/id"
    ) -> Sequence[StoredVim]:
        """Return cloud regions that match all of ``wanted``, sorted by a path: those whose id is behind ``after``."""
        conditions: list[Filter] = [*wanted]
        if after is not None:
            conditions.append(Compare("region/id", Op.GT, [after]))
        query = Query(AllOf([Exists("region/id"), *conditions]), sort=Sort(sort), limit=limit)
        return [_read(stored) for stored in await self._store.find(COLLECTION, query)]

    async def suspended(self) -> Sequence[StoredVim]:
        """Return the suspended cloud regions."""
        return [_read(stored) for stored in await self._store.find(COLLECTION, Query(Exists(SUSPENDED_SINCE)))]

    async def with_inventory(self) -> Sequence[StoredVim]:
        """Return the cloud regions whose kubeconfig is read from an inventory."""
        return [_read(stored) for stored in await self._store.find(COLLECTION, Query(Exists(INVENTORY_TYPE)))]

    async def insert(self, vim: VimRecord, events: Sequence[Event] = ()) -> None:
        """Store a new record. Raises NameTaken, SecondDefault, AlreadyExists (the id)."""
        try:
            await self._outbox.insert(COLLECTION, vim.id, vim.document(self._ring), events=_envelopes(vim.id, events))
        except AlreadyExists as error:
            await self._explain(vim, error)

    async def replace(self, stored: StoredVim, vim: VimRecord, events: Sequence[Event] = ()) -> None:
        """Replace the stored record; note when its status has changed. Raises NameTaken, SecondDefault, RevisionConflict."""
        # A registration that comes again brings a record of its own.
        since = self.now() if vim.status != stored.vim.status else stored.vim.status_since
        vim = vim.model_copy(update={"status_since": since})
        try:
            await self._outbox.replace(
                COLLECTION,
                vim.id,
                vim.document(self._ring),
                if_revision=stored.revision,
                events=_envelopes(vim.id, events),
            )
        except AlreadyExists as error:
            await self._explain(vim, error)

    async def delete(self, vim_id: str, events: Sequence[Event] = (), *, if_revision: int | None = None) -> None:
        """Remove a record, at any revision if none is given. A missing record is no error. Raises RevisionConflict."""
        await self._outbox.delete(COLLECTION, vim_id, if_revision=if_revision, events=_envelopes(vim_id, events))

    async def remove_default(self, tenant_id: str, *, new_default: str) -> None:
        """Make the tenant's default VIM an ordinary one, unless it is ``new_default`` itself."""
        for stored in await self._store.find(COLLECTION, Query(by(default_of=tenant_id))):
            if stored.id != new_default:
                try:
                    await self._store.update(
                        COLLECTION,
                        stored.id,
                        {"is_default": False},
                        unset=["default_of"],
                        if_revision=stored.revision,
                    )
                except RevisionConflict:
                    continue  # changed meanwhile; if it is still the default, the write of the new default fails

    async def _explain(self, vim: VimRecord, error: AlreadyExists) -> None:
        """Raise the error for the unique index that was violated, which the store does not name."""
        namesake = await self.find_by_name(vim.tenant_id, vim.name)
        if namesake is not None and namesake.vim.id != vim.id:
            raise NameTaken(f"the tenant already has a VIM named {vim.name} ({namesake.vim.id})") from error
        if vim.is_default:
            for other in await self.find({"default_of": [vim.tenant_id]}):
                if other.id != vim.id:
                    raise SecondDefault(f"the tenant's default VIM is already {other.name} ({other.id})") from error
        raise error


def _read(stored: Stored) -> StoredVim:
    return StoredVim(VimRecord.model_validate({**stored.body, "id": stored.id}), stored.revision)


def _envelopes(vim_id: str, events: Sequence[Event]) -> list[Envelope[Event]]:
    return [Envelope(event, source=SOURCE, subject=vim_id) for event in events]
