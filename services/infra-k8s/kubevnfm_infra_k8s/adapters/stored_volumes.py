"""The stored persistent volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_events import Envelope, Event
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Index, Op, Query, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_infra_k8s.adapters.stored_links import SOURCE, page_query
from kubevnfm_infra_k8s.domain.volumes.events import change_of
from kubevnfm_infra_k8s.domain.volumes.record import Volume

VOLUMES: Final = "persistent_volumes"
# The unique index decides races between processes about the name of a volume.
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    VOLUMES: [
        Index(["vim_id", "name"], unique=True),
        Index(["cloud_region_id", "id"]),
        Index(["settled"]),
        Index(["uses/reference"]),
        Index(["name"]),
        Index(["id"]),
    ]
}
_FILTERS: Final = {
    "cloud_region_id": "cloud_region_id",
    "vim_id": "vim_id",
    "name": "name",
    "namespace": "uses/namespace",
    "status": "phase",
}
"""The attribute of the document by the name of a filter."""


class StoredVolumes:
    """`domain.volumes.ports.VolumeRecords`: a document each."""

    def __init__(self, store: DocumentStore, outbox: Outbox) -> None:
        self._store, self._outbox = store, outbox

    async def get(self, volume_id: str, /) -> Volume | None:
        stored = await self._store.get(VOLUMES, volume_id)
        return None if stored is None else Volume.from_stored(stored)

    async def named(self, vim_id: str, name: str) -> Volume | None:
        found = await self._store.find(VOLUMES, Query(by(vim_id=vim_id, name=name), limit=1))
        return Volume.from_stored(found[0]) if found else None

    async def used_by(self, reference: str) -> Sequence[Volume]:
        used = Compare("uses/reference", Op.EQ, [reference])
        return [Volume.from_stored(each) for each in await self._store.find(VOLUMES, Query(used))]

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[Volume]:
        found = await self._store.find(VOLUMES, page_query(_FILTERS, filters, limit=limit, after=after))
        return [Volume.from_stored(each) for each in found]

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        return await self._ids(is_settled=False)

    async def has_unsettled(self) -> bool:
        return await self._store.count(VOLUMES, by(settled=False), limit=1) > 0

    async def settled(self) -> Sequence[tuple[str, str]]:
        return await self._ids(is_settled=True)

    async def insert(self, volume: Volume) -> Volume:
        return Volume.from_stored(await self._store.insert(VOLUMES, volume.id, volume.document()))

    async def replace(self, volume: Volume, event: Event | None = None) -> Volume:
        events = [] if event is None else [Envelope(event, source=SOURCE, subject=volume.id)]
        return Volume.from_stored(
            await self._outbox.replace(
                VOLUMES, volume.id, volume.document(), if_revision=volume.revision, events=events
            )
        )

    async def lose_region(self, volume: Volume, reason: str, /, *, now: str) -> None:
        changed = volume.without_region(reason, now=now)
        if changed != volume:
            await self.replace(changed, change_of(volume, changed))

    async def delete(self, volume: Volume, /) -> None:
        await self._store.delete(VOLUMES, volume.id, if_revision=volume.revision)

    async def _ids(self, *, is_settled: bool) -> Sequence[tuple[str, str]]:
        found = await self._store.find(VOLUMES, Query(by(settled=is_settled), exclude=["uses"]))
        return [(each.id, str(each.body["vim_id"])) for each in found]
