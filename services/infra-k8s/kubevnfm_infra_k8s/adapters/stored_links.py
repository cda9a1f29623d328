"""The stored virtual links, and the turns by which one process at a time works on a thing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from kubevnfm_events import Envelope, Event
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, Query, Sort, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_infra_k8s.domain.links.ports import TurnTaken
from kubevnfm_infra_k8s.domain.links.record import Link

LINKS: Final = "virtual_links"
TURNS: Final = "k8s_turns"
SOURCE: Final = "/kubevnfm/infra-k8s"
# The unique index decides races between processes about the name of a link.
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    LINKS: [
        Index(["vim_id", "name"], unique=True),
        Index(["cloud_region_id", "id"]),
        Index(["settled"]),
        Index(["id"]),
    ],
    TURNS: [Index(["holder"])],
}
_FILTERS: Final = {
    "cloud_region_id": "cloud_region_id",
    "vim_id": "vim_id",
    "name": "name",
    "type": "type",
    "status": "status",
    "namespace": "holders/namespaces",
}
"""The attribute of the document by the name of a filter."""
_LEASE: Final = timedelta(seconds=30)
_PAUSE_S: Final = 0.05


class StoredLinks:
    """`domain.links.ports.LinkRecords`: a document each."""

    def __init__(self, store: DocumentStore, outbox: Outbox) -> None:
        self._store, self._outbox = store, outbox

    async def get(self, link_id: str) -> Link | None:
        stored = await self._store.get(LINKS, link_id)
        return None if stored is None else Link.from_stored(stored)

    async def named(self, vim_id: str, name: str) -> Link | None:
        found = await self._store.find(LINKS, Query(by(vim_id=vim_id, name=name), limit=1))
        return Link.from_stored(found[0]) if found else None

    async def in_region(self, vim_id: str) -> Sequence[Link]:
        return [Link.from_stored(each) for each in await self._store.find(LINKS, Query(by(vim_id=vim_id)))]

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[Link]:
        wanted: list[Filter] = [Compare(_FILTERS[name], Op.EQ, [value]) for name, value in filters.items()]
        behind = None if after is None else (after, after)
        found = await self._store.find(LINKS, Query(AllOf(wanted), sort=Sort("id"), after=behind, limit=limit))
        return [Link.from_stored(each) for each in found]

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        return await self._ids(is_settled=False)

    async def settled(self) -> Sequence[tuple[str, str]]:
        return await self._ids(is_settled=True)

    async def insert(self, link: Link) -> Link:
        return Link.from_stored(await self._store.insert(LINKS, link.id, link.document()))

    async def replace(self, link: Link, event: Event | None = None) -> Link:
        events = [] if event is None else [Envelope(event, source=SOURCE, subject=link.id)]
        return Link.from_stored(
            await self._outbox.replace(LINKS, link.id, link.document(), if_revision=link.revision, events=events)
        )

    async def delete(self, link: Link) -> None:
        await self._store.delete(LINKS, link.id, if_revision=link.revision)

    async def _ids(self, *, is_settled: bool) -> Sequence[tuple[str, str]]:
        large = ["spec", "metadata", "holders", "objects"]
        found = await self._store.find(LINKS, Query(by(settled=is_settled), exclude=large))
        return [(each.id, str(each.body["vim_id"])) for each in found]


class StoredTurns:
    """`domain.links.ports.Turns`: a document while the turn lasts."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    @asynccontextmanager
    async def held(self, name: str, *, within_s: float) -> AsyncIterator[None]:
        holder, loop = new_id(), asyncio.get_running_loop()
        until = loop.time() + within_s
        while not await self._take(name, holder):
            if loop.time() >= until:
                raise TurnTaken(f"{name}: another process works on it")
            await asyncio.sleep(_PAUSE_S)
        try:
            yield
        finally:
            # By its holder: if the turn has ended meanwhile, that of the next one stays.
            await self._store.delete_many(TURNS, by(holder=holder))

    async def _take(self, name: str, holder: str) -> bool:
        now = self._clock.now()
        body = {"holder": holder, "until": rfc3339(now + _LEASE)}
        try:
            await self._store.insert(TURNS, name, body)
        except AlreadyExists:
            try:
                await self._store.update(TURNS, name, body, where=Compare("until", Op.LTE, [rfc3339(now)]))
            except RevisionConflict:
                return False
        return True
