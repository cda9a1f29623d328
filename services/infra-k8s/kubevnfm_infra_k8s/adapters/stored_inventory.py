"""The stored inventory: the records of objects, the regions that are watched, and what releases say of instances."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from weakref import WeakValueDictionary

from cachetools import LRUCache, TTLCache
from kubevnfm_events import Envelope, Event
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Filter, Index, Op, Query, Sort, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks, is_gone
from kubevnfm_infra_k8s.adapters.leases import LEADER, is_held
from kubevnfm_infra_k8s.adapters.turns import TURNS
from kubevnfm_infra_k8s.domain.inventory.ports import Kind, Stale, Watched
from kubevnfm_infra_k8s.domain.inventory.record import (
    Identity,
    InstanceFacts,
    ObjectRecord,
    Place,
    changes_of,
    troubles_of,
)
from kubevnfm_infra_k8s.domain.inventory.seen_object import SeenObject
from kubevnfm_infra_k8s.domain.objects import group_of
from kubevnfm_infra_k8s.domain.release import ADDONS, Release, release_id

OBJECTS: Final = "k8s_inventory"
REGIONS: Final = "k8s_watched_regions"
RELEASES: Final = "k8s_releases"
SOURCE: Final = "/kubevnfm/infra-k8s"
FILTERS: Final = {
    "vim_id": "vim_id",
    "vnf_id": "vnf_instance_id",
    "kind": "kind",
    "namespace": "namespace",
    "name": "name",
    "uid": "uid",
    "ip": "ips",
    "scope": "scope",
    "ill": "ill",
}
"""The attribute of a record by the name of a filter."""
_IS_STALE: Final = "watch/isStale"
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    OBJECTS: [
        *(Index([path, "id"]) for path in FILTERS.values()),
        Index(["id"]),
        Index(["vnf_instance_id", "kind", "id"]),
    ],
    REGIONS: [Index(["news"]), Index([_IS_STALE])],
}
_TRIES: Final = 50
_REASON_BYTES: Final = 1024
_MOST_NAMESPACES: Final = 1000
"""The limit for a region; namespaces matter only where the credentials may not watch all namespaces at once."""
_PAGE: Final = 200
_MOST_REMEMBERED: Final = 2000
"""Instances whose releases are remembered for a moment: a burst of events reads them once."""
_REMEMBERED: Final = timedelta(seconds=1)
_MOST_NOTED: Final = 1000
NOTED_S: Final = 20.0
"""Below the time from one search for unused regions to the next, of which it takes two to remove one."""


class StoredObjects:
    """`domain.inventory.ports.InventoryRecords`: a document each."""

    def __init__(self, store: DocumentStore, outbox: Outbox, marks: ExportMarks | None = None) -> None:
        """``marks``: marks changes for the export to A&AI; None: there is no export."""
        self._store, self._outbox, self._marks = store, outbox, marks

    async def get(self, record_id: str) -> ObjectRecord | None:
        stored = await self._store.get(OBJECTS, record_id)
        return None if stored is None or is_gone(stored) else ObjectRecord.from_stored(stored)

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[ObjectRecord]:
        # Objects that are gone, and not yet removed from A&AI, have none of these.
        wanted: list[Filter] = [
            Compare(FILTERS[name], Op.EQ, [True if name == "ill" else value]) for name, value in filters.items()
        ]
        if not filters:
            # A condition on the index that gives the order.
            wanted = [Compare("id", Op.GT, [""])]
        behind = None if after is None else (after, after)
        query = Query(AllOf(wanted), sort=Sort("id"), after=behind, limit=limit, exclude=["ips", "scope"])
        return [ObjectRecord.from_stored(each) for each in await self._store.find(OBJECTS, query)]

    async def write(self, old: ObjectRecord | None, new: ObjectRecord) -> int:
        events = _announced(old, new)
        body = (new if self._marks is None else self._marks.written(old, new)).document()
        if old is not None:
            return (await self._outbox.replace(OBJECTS, new.id, body, if_revision=old.revision, events=events)).revision
        try:
            return (await self._outbox.insert(OBJECTS, new.id, body, events=events)).revision
        except AlreadyExists as error:
            stored = await self._store.get(OBJECTS, new.id)
            if stored is None or not is_gone(stored):
                raise RevisionConflict(f"inventory {new.id}: stored by another process") from error
            body = (new if self._marks is None else self._marks.written_again(stored, new)).document()
            again = await self._outbox.replace(OBJECTS, new.id, body, if_revision=stored.revision, events=events)
            return again.revision

    async def remove(self, old: ObjectRecord) -> None:
        events = _announced(old, None)
        if self._marks is None:
            await self._outbox.delete(OBJECTS, old.id, if_revision=old.revision, events=events)
            return
        gone = self._marks.removed(old)
        await self._outbox.replace(OBJECTS, old.id, gone, if_revision=old.revision, events=events)

    async def remove_unread(self, record_id: str, revision: int) -> bool:
        if self._marks is not None:
            return False
        await self._outbox.delete(OBJECTS, record_id, if_revision=revision)
        return True


def _announced(old: ObjectRecord | None, new: ObjectRecord | None) -> list[Envelope[Event]]:
    placements = [Envelope[Event](each, source=SOURCE, subject=each.vnf_instance_id) for each in changes_of(old, new)]
    troubles = [Envelope[Event](each, source=SOURCE, subject=each.vnf_instance_id) for each in troubles_of(old, new)]
    return placements + troubles


class StoredRegions:
    """`domain.inventory.ports.WatchedRegions`: a document for each VIM."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._writes = store.writes_to(REGIONS)

    async def all(self) -> Sequence[Watched]:
        return [_watched(each) for each in await self._store.find(REGIONS, Query())]

    async def news(self) -> Sequence[Watched]:
        return [_watched(each) for each in await self._store.find(REGIONS, Query(by(news=True)))]

    async def await_news(self, *, look_s: float, longest_s: float) -> None:
        await self._writes.following(look_s=look_s, longest_s=longest_s)

    async def clear_news(self, region: Watched) -> None:
        # If it is changed meanwhile, it is news again.
        with suppress(RevisionConflict):
            await self._store.update(REGIONS, region.vim_id, {"news": False}, if_revision=region.revision)

    async def mark(self, vim_id: str, term: int, stale: Mapping[Kind, Stale]) -> None:
        listed = [
            {"apiVersion": version, "kind": kind, "since": each.since, "reason": bounded(each.reason, _REASON_BYTES)}
            for (version, kind), each in sorted(stale.items())
        ]
        with suppress(RevisionConflict):
            now = rfc3339(self._clock.now())
            watch = {"term": term, "stale": listed, "isStale": bool(listed), "since": now}
            await self._store.update(REGIONS, vim_id, {"watch": watch})

    async def is_used(self, region: Watched) -> bool:
        return bool(await self._store.count(RELEASES, _there(region), limit=1))

    async def used_namespaces(self, region: Watched) -> frozenset[str]:
        found, after = set[str](), None
        while page := await self._store.find(RELEASES, Query(_there(region), after=after, limit=_PAGE)):
            found |= {str(each["namespace"]) for release in page for each in release.body["objects"]}
            after = (None, page[-1].id)
        return frozenset(found - {""})

    async def keep_namespaces(self, region: Watched, namespaces: frozenset[str]) -> Watched | None:
        body: JsonObject = {"namespaces": sorted(namespaces)[:_MOST_NAMESPACES]}
        try:
            stored = await self._store.update(REGIONS, region.vim_id, body, if_revision=region.revision)
        except RevisionConflict:
            return None
        return _watched(stored)

    async def remove(self, region: Watched) -> bool:
        try:
            await self._store.delete(REGIONS, region.vim_id, if_revision=region.revision)
        except RevisionConflict:
            return False
        return True

    async def stale(self, wanted: Collection[tuple[str, Kind]]) -> Mapping[tuple[str, Kind], Stale]:
        if not wanted:
            return {}
        lease = await self._store.get(TURNS, LEADER)
        vim_ids = sorted({vim_id for vim_id, _ in wanted})
        watches = {each.id: each.body.get("watch") or {} for each in await self._store.get_many(REGIONS, vim_ids)}
        found: dict[tuple[str, Kind], Stale] = {}
        for vim_id, kind in wanted:
            watch = watches.get(vim_id, {})
            marks = [each for each in watch.get("stale", ()) if (each["apiVersion"], each["kind"]) == kind]
            if marks:
                found[vim_id, kind] = _stale(marks[0])
            elif (unwatched := self._unwatched(lease, watch)) is not None:
                found[vim_id, kind] = unwatched
        return found

    async def watch_of(self, vim_id: str) -> tuple[str, Sequence[tuple[Kind, Stale]]] | None:
        stored = await self._store.get(REGIONS, vim_id)
        if stored is None:
            return None
        watch = stored.body.get("watch") or {}
        stale = [((str(each["apiVersion"]), str(each["kind"])), _stale(each)) for each in watch.get("stale", ())]
        lease = await self._store.get(TURNS, LEADER)
        unwatched = self._unwatched(lease, watch)
        return str(watch.get("since", "")), [(("v1", "Pod"), unwatched)] if unwatched is not None else stale

    async def is_watching(self) -> bool:
        lease = await self._store.get(TURNS, LEADER)
        return lease is not None and is_held(lease, self._clock.now())

    async def all_stale(self, *, limit: int) -> Sequence[tuple[str, Kind, Stale]]:
        found = [
            (region.id, (str(each["apiVersion"]), str(each["kind"])), _stale(each))
            for region in await self._store.find(REGIONS, Query(exclude=["kinds", "namespaces"]))
            for each in (region.body.get("watch") or {}).get("stale", ())
        ]
        return found[:limit]

    async def stale_regions(
        self, *, vim_id: str | None, limit: int
    ) -> Sequence[tuple[str, Sequence[tuple[Kind, Stale]]]]:
        if vim_id is not None:
            found = await self._store.get_many(REGIONS, [vim_id])
        else:
            is_stale = Compare(_IS_STALE, Op.EQ, [True])
            found = await self._store.find(REGIONS, Query(is_stale, limit=limit, exclude=["kinds", "namespaces"]))
        regions = [(each.id, (each.body.get("watch") or {}).get("stale", ())) for each in found]
        return [
            (region, [((str(each["apiVersion"]), str(each["kind"])), _stale(each)) for each in marks])
            for region, marks in regions
            if marks
        ]

    async def unwatched_since(self) -> str:
        lease = await self._store.get(TURNS, LEADER)
        return "" if lease is None or is_held(lease, self._clock.now()) else str(lease.body["renewed_at"])

    def _unwatched(self, lease: Stored | None, watch: Mapping[str, Any]) -> Stale | None:
        """Return since when no process has watched a region; None if one has listed it and watches."""
        if lease is None:
            return Stale("", "no process has watched yet")
        if not is_held(lease, self._clock.now()):
            return Stale(lease.body["renewed_at"], "no process watches")
        if watch.get("term") != lease.body["term"]:
            return Stale(lease.body["began_at"], "the objects of the region are being listed")
        return None


def _stale(mark: Mapping[str, Any]) -> Stale:
    return Stale(str(mark["since"]), str(mark["reason"]))


class ReleaseNotes:
    """Stores what releases have for the watches: before a release is stored, so that nothing of it is missed."""

    def __init__(self, store: DocumentStore, *, noted_s: float) -> None:
        self._store = store
        self._noted: TTLCache[str, Watched] = TTLCache(_MOST_NOTED, noted_s)
        """By VIM; not for long, as another process may remove a region and store it with less."""
        self._renewed: TTLCache[str, Watched] = TTLCache(_MOST_NOTED, noted_s)
        """Those that this process has written: no search that began earlier removes them."""

    async def note(self, release: Release) -> None:
        """Have the objects of a release watched. One that is new renews its region, which may be ending, unless that was done just now."""
        if not release.vim_id:
            return
        kinds = frozenset(entry.key.api_kind for entry in release.entries)
        namespaces = frozenset(entry.key.namespace for entry in release.entries) - {""}
        noted = (self._noted if release.revision else self._renewed).get(release.vim_id)
        if noted is not None and kinds <= noted.kinds and namespaces <= noted.namespaces:
            return
        for _ in range(_TRIES):
            stored = await self._store.get(REGIONS, release.vim_id)
            known = None if stored is None else _watched(stored)
            if release.revision and known is not None and kinds <= known.kinds and namespaces <= known.namespaces:
                self._noted[release.vim_id] = known
                return
            body = {
                "cluster": release.cluster,
                "kinds": sorted(map(list, kinds | (known.kinds if known is not None else set()))),
                "namespaces": sorted(namespaces | (known.namespaces if known is not None else set()))[
                    :_MOST_NAMESPACES
                ],
                "news": True,
            }
            try:
                if stored is None:
                    stored = await self._store.insert(REGIONS, release.vim_id, body)
                else:
                    stored = await self._store.update(REGIONS, release.vim_id, body, if_revision=stored.revision)
            except (AlreadyExists, RevisionConflict):
                continue
            # With those that are beyond the limit, which need not be tried again.
            written = replace(_watched(stored), namespaces=_watched(stored).namespaces | namespaces)
            self._noted[release.vim_id] = self._renewed[release.vim_id] = written
            return
        raise RevisionConflict(f"VIM {release.vim_id}: too many releases change at the same time")


def _there(region: Watched) -> Filter:
    """Return which releases are in a region."""
    # Releases that an earlier version has stored do not name their VIM. Those of another VIM that is the same cluster do.
    unnamed = AnyOf([Exists("vimId", exists=False), by(vimId="")])
    return AnyOf([by(vimId=region.vim_id), AllOf([by(cluster=region.cluster), unnamed])])


def _watched(stored: Stored) -> Watched:
    body = stored.body
    kinds = frozenset((str(version), str(kind)) for version, kind in body["kinds"])
    watch = body.get("watch") or {}
    return Watched(
        stored.id,
        str(body["cluster"]),
        kinds,
        frozenset(body["namespaces"]),
        stored.revision,
        term=int(watch.get("term", 0)),
        is_stale=bool(watch.get("stale")),
        since=str(watch.get("since", "")),
    )


class StoredInstances:
    """`domain.inventory.ports.Instances`: the releases, remembered for a moment."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._read: LRUCache[tuple[str, str, str], tuple[datetime, set[str], InstanceFacts | None]] = LRUCache(
            _MOST_REMEMBERED
        )
        """When it was read, and the operations whose objects were seen since."""
        self._reading: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()
        """Held by the one that reads, for others that want the same."""

    async def facts(self, seen: SeenObject, vim_id: str, cluster: str) -> InstanceFacts | None:
        key = seen.vnf_instance_id, vim_id, cluster
        async with self._reading.setdefault(key, asyncio.Lock()):
            return await self._facts(seen, key)

    async def _facts(self, seen: SeenObject, key: tuple[str, str, str]) -> InstanceFacts | None:
        (_, vim_id, cluster), now = key, self._clock.now()
        known = self._read.get(key)
        # An operation stores the release before it sends an object, so the first object of one shows that it may have changed.
        if known is not None and now - known[0] < _REMEMBERED and (not seen.operation or seen.operation in known[1]):
            return known[2]
        operations = {seen.operation, *(known[1] if known is not None and now - known[0] < _REMEMBERED else ())}
        ids = [release_id(seen.vnf_instance_id, part) for part in ("", ADDONS)]
        bodies = [each.body for each in await self._store.get_many(RELEASES, ids)]
        here = [each for each in bodies if (each.get("vimId") or vim_id) == vim_id and _is_at(each, cluster)]
        facts = InstanceFacts(dict(_places(here))) if here else None
        self._read[key] = now, operations, facts
        return facts


def _is_at(release: Mapping[str, Any], cluster: str) -> bool:
    """Return whether a release names its VIM, or else the cluster, as one that an earlier version has stored."""
    return bool(release.get("vimId")) or release["cluster"] == cluster


def _places(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Identity, Place]]:
    for release in releases:
        for each in release["objects"]:
            identity = group_of(each["apiVersion"]), each["kind"], each["namespace"], each["name"]
            yield identity, Place(each.get("vduId"), each.get("priority"))
