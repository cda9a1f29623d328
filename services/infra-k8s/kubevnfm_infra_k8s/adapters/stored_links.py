"""The stored virtual links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from kubevnfm_events import Envelope, Event
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.prefixes import prefixed
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, Query, Sort, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.domain.links.events import change_of
from kubevnfm_infra_k8s.domain.links.record import Link

LINKS: Final = "virtual_links"
SOURCE: Final = "/kubevnfm/infra-k8s"
# The unique index decides races between processes about the name of a link.
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    LINKS: [
        Index(["vim_id", "name"], unique=True),
        Index(["cloud_region_id", "id"]),
        Index(["settled"]),
        Index(["holders/reference"]),
        Index(["objects/namespace"]),
        Index(["name"]),
        Index(["id"]),
    ],
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
_LARGE: Final = ("spec", "metadata", "holders", "objects")


_PREFIXES: Final = {"id_prefix": "id", "name_prefix": "name"}


def page_query(known: Mapping[str, str], filters: Mapping[str, str], *, limit: int, after: str | None) -> Query:
    """Return the query of a page by id; by name, and the first page alone, for what has a name that begins so.

    ``known``: the attribute by the name of a filter, in addition to ``id_prefix`` and ``name_prefix``. Raises InvalidInput for another one.
    """
    wanted: list[Filter] = []
    for name, value in filters.items():
        if name in _PREFIXES:
            wanted += prefixed(_PREFIXES[name], value)
        elif name in known:
            wanted.append(Compare(known[name], Op.EQ, [value]))
        else:
            raise InvalidInput(name, "unknown filter")
    if "name_prefix" in filters:
        return Query(AllOf(wanted), sort=Sort("name"), limit=limit)
    return Query(AllOf(wanted), sort=Sort("id"), after=None if after is None else (after, after), limit=limit)


class StoredLinks:
    """`domain.links.ports.LinkRecords`: a document each."""

    def __init__(self, store: DocumentStore, outbox: Outbox, marks: ExportMarks | None = None) -> None:
        """``marks``: marks changes for the export to A&AI; None: there is no export."""
        self._store, self._outbox, self._marks = store, outbox, marks

    async def get(self, link_id: str, /) -> Link | None:
        stored = await self._store.get(LINKS, link_id)
        return None if stored is None else Link.from_stored(stored)

    async def named(self, vim_id: str, name: str) -> Link | None:
        found = await self._store.find(LINKS, Query(by(vim_id=vim_id, name=name), limit=1))
        return Link.from_stored(found[0]) if found else None

    async def held_by(self, reference: str) -> Sequence[Link]:
        held = Compare("holders/reference", Op.EQ, [reference])
        return [Link.from_stored(each) for each in await self._store.find(LINKS, Query(held))]

    async def with_objects_in(self, namespace: str) -> Sequence[Link]:
        there = Compare("objects/namespace", Op.EQ, [namespace])
        return [Link.from_stored(each) for each in await self._store.find(LINKS, Query(there))]

    async def in_region(self, vim_id: str) -> Sequence[Link]:
        return [Link.from_stored(each) for each in await self._store.find(LINKS, Query(by(vim_id=vim_id)))]

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[Link]:
        found = await self._store.find(LINKS, page_query(_FILTERS, filters, limit=limit, after=after))
        return [Link.from_stored(each) for each in found]

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        return await self._ids(is_settled=False)

    async def has_unsettled(self) -> bool:
        return await self._store.count(LINKS, by(settled=False), limit=1) > 0

    async def settled(self) -> Sequence[tuple[str, str]]:
        return await self._ids(is_settled=True)

    async def insert(self, link: Link) -> Link:
        await self._announce(link, 1)
        return Link.from_stored(await self._store.insert(LINKS, link.id, link.document()))

    async def replace(self, link: Link, event: Event | None = None) -> Link:
        await self._announce(link, link.revision + 1)
        events = [] if event is None else [Envelope(event, source=SOURCE, subject=link.id)]
        return Link.from_stored(
            await self._outbox.replace(LINKS, link.id, link.document(), if_revision=link.revision, events=events)
        )

    async def lose_region(self, link: Link, reason: str, /, *, now: str) -> None:
        changed = link.without_region(reason, now=now)
        if changed != link:
            await self.replace(changed, change_of(link, changed))

    async def delete(self, link: Link, /) -> None:
        await self._announce(link, 0)
        await self._store.delete(LINKS, link.id, if_revision=link.revision)

    async def _announce(self, link: Link, expected: int) -> None:
        # Before the write, so that a kill in between loses no change.
        if self._marks is not None:
            await self._marks.announce("link", link.id, expected=expected)

    async def _ids(self, *, is_settled: bool) -> Sequence[tuple[str, str]]:
        found = await self._store.find(LINKS, Query(by(settled=is_settled), exclude=_LARGE))
        return [(each.id, str(each.body["vim_id"])) for each in found]


class StoredLinkStates:
    """`adapters.region_metrics.Links`."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def states(self) -> AsyncIterator[tuple[str, str]]:
        for each in await self._store.find(LINKS, Query(exclude=_LARGE)):
            yield str(each.body["vim_id"]), str(each.body["status"])
