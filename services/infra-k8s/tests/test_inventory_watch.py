"""The watch over one kind, given what a region might say, and what is written of it (multicloud.md MC-051, MC-107, MC-108)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.adapters.stored_inventory import OBJECTS, REGIONS, StoredRegions
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.inventory.kind_watch import KindWatch
from kubevnfm_infra_k8s.domain.inventory.ports import InventoryRecords, Kind, Stale, Watched
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord
from kubevnfm_infra_k8s.domain.inventory.seen_object import SeenObject
from kubevnfm_infra_k8s.domain.inventory.watcher import RegionWatch
from kubevnfm_infra_k8s.domain.objects import PODS, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Clusters, Seen
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_kit.clock import SystemClock
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until, until_true
from worlds.inventory_world import InventoryWorld, inventory_world

_VIM = VimConnection(vim_id="vim")
_CLUSTER = "https://cluster.example"


@dataclass
class FedCluster:
    """A cluster whose watch shows what the test reports."""

    given: asyncio.Queue[Seen[Any]] = field(default_factory=asyncio.Queue)

    async def resource(self, api_version: str, kind: str) -> Resource:
        return replace(PODS, api_version=api_version, kind=kind)

    def follow_metadata(
        self, resource: Resource, keep: Callable[[Any], SeenObject], **where: str
    ) -> AsyncGenerator[Seen[SeenObject], None]:
        return self.follow_kept(resource, keep, (), **where)

    async def follow_kept(
        self, resource: Resource, keep: Callable[[Any], SeenObject], parts: Sequence[Sequence[str]], **where: str
    ) -> AsyncGenerator[Seen[SeenObject], None]:
        while True:
            seen = await self.given.get()
            yield replace(seen, found={name: keep(body) for name, body in seen.found.items()})

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[FedCluster]:
        yield self

    def report(
        self, *pods: dict[str, Any], gone: tuple[str, ...] = (), is_all: bool = False, in_one_namespace: bool = False
    ) -> None:
        names = [each["metadata"]["name"] for each in pods]
        if not in_one_namespace:
            names = [f"{each['metadata']['namespace']}/{name}" for each, name in zip(pods, names, strict=True)]
        self.given.put_nowait(Seen(dict(zip(names, pods, strict=True)), gone=gone, is_all=is_all))


@dataclass
class HeldRecords:
    """The records of a database that takes its time."""

    records: InventoryRecords
    goes_on: asyncio.Event
    begun: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.records, name)

    async def get(self, record_id: str) -> ObjectRecord | None:
        self.begun += 1
        await self.goes_on.wait()
        return await self.records.get(record_id)


def pod(name: str = "web-1", *, of: str = "i1", namespace: str = "ns", node: str = "w1") -> dict[str, Any]:
    labels = {"kubevnfm.io/vnf-instance-id": of}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": "u1", "labels": labels},
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    }


def a_release(instance: str, *kinds: str, vim_id: str = "vim") -> Release:
    entries = [Entry(ObjectKey("v1", kind, "ns", "one"), "f.yaml", "d") for kind in kinds]
    return Release(instance, _CLUSTER, entries=entries, vim_id=vim_id)


@asynccontextmanager
async def watched(
    store: SqliteStore, namespace: str = "", *, kind: str = "Pod"
) -> AsyncIterator[tuple[InventoryWorld, FedCluster, HeldRecords]]:
    """Yield what a watch over the pods of a region writes, in which VNFs i1 and i2 have objects."""
    given = FedCluster()
    async with inventory_world(store, cast("Clusters", given), {"vim": _VIM}) as world:
        for instance in ("i1", "i2"):
            await StoredReleases(store).save(a_release(instance, "ConfigMap"))
        goes_on = asyncio.Event()
        goes_on.set()
        held = HeldRecords(world.watching().records, goes_on)
        watching = replace(world.watching(), records=cast("InventoryRecords", held))
        watch = KindWatch(watching, "vim", _CLUSTER, "v1", kind, namespace, lambda error: None)
        running = asyncio.create_task(watch.run())
        yield world, given, held
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def names(store: SqliteStore) -> list[str]:
    return sorted(str(each.body["name"]) for each in await store.find(OBJECTS, Query()))


async def has_node(store: SqliteStore, node: str) -> bool:
    return [each.body["node"] for each in await store.find(OBJECTS, Query())] == [node]


@pytest.mark.parametrize("between", ["changed", "gone"])
async def test_a_state_that_returns_while_another_is_written_is_written_again(store: SqliteStore, between: str) -> None:
    async with watched(store) as (_, given, held):
        given.report(pod(), is_all=True)
        await until_true(lambda: has_node(store, "w1"))
        held.goes_on.clear()
        held.begun = 0
        if between == "changed":
            given.report(pod(node="w2"))
        else:
            given.report(gone=("ns/web-1",))

        async def is_written() -> bool:
            return held.begun == 1

        await until_true(is_written)
        given.report(pod())
        given.report(pod("last"))
        held.goes_on.set()

        async def is_there() -> bool:
            # The two are written side by side.
            return {(each.body["name"], each.body["node"]) for each in await store.find(OBJECTS, Query())} == {
                ("last", "w1"),
                ("web-1", "w1"),
            }

        await until_true(is_there)


async def test_a_record_about_which_there_is_no_event_is_removed_without_a_read(store: SqliteStore) -> None:
    """MC-112."""
    async with watched(store, kind="ConfigMap") as (_, given, held):
        given.report(pod("one"), pod("two"), is_all=True)

        async def are_there() -> bool:
            return await names(store) == ["one", "two"]

        await until_true(are_there)
        # As the next leader could have written it.
        (two,) = [each for each in await store.find(OBJECTS, Query()) if each.body["name"] == "two"]
        await store.update(OBJECTS, two.id, {"changed_at": "later"})
        given.report(gone=("ns/one", "ns/two"))

        async def are_gone() -> bool:
            return not await names(store)

        await until_true(are_gone)
        assert held.begun == 1


@pytest.mark.parametrize("namespace", ["", "ns"])
async def test_objects_with_names_that_no_api_server_accepts_hold_up_no_others(
    store: SqliteStore, namespace: str
) -> None:
    async with watched(store, namespace) as (_, given, _held):
        for node in ("w1", "w2"):
            strange = [
                *(pod(f"a\x1b[31mb{number}", node=node) for number in range(70)),
                pod("a/b", node=node), pod("n" * 300, node=node),
            ]  # fmt: skip
            if namespace:
                strange.append(pod(namespace="other", node=node))
            given.report(*strange, is_all=node == "w1", in_one_namespace=bool(namespace))
        given.report(pod("web-2"), in_one_namespace=bool(namespace))

        async def is_there() -> bool:
            return "web-2" in await names(store)

        await until_true(is_there)
        assert await names(store) == ["web-2"]


async def test_an_object_that_changes_hands_vanishes_from_the_one_vnf_and_is_new_in_the_other(
    store: SqliteStore,
) -> None:
    """MC-051: and one that names a VNF without objects in the region is of none."""
    async with watched(store) as (world, given, _):
        events = world.events

        async def published(number: int) -> bool:
            return len(events) == number

        given.report(pod(), pod("strange", of="of-another-operator"), is_all=True)
        await until_true(lambda: published(1))
        given.report(pod(of="i2"))
        await until_true(lambda: published(3))
        given.report(gone=("ns/web-1",))
        await until_true(lambda: published(4))
        assert [(each.vnf_instance_id, each.change, each.name) for each in events] == [
            ("i1", "created", "web-1"),
            ("i1", "vanished", "web-1"),
            ("i2", "created", "web-1"),
            ("i2", "vanished", "web-1"),
        ]
        assert await names(store) == []


async def test_kinds_beyond_the_limit_of_a_region_show_that_they_are_not_watched(store: SqliteStore) -> None:
    """MC-055: and pods are watched before all others."""
    marked: list[Mapping[Kind, Stale]] = []

    async def mark(stale: Mapping[Kind, Stale]) -> None:
        marked.append(stale)

    given = FedCluster()
    async with inventory_world(store, cast("Clusters", given), {"vim": _VIM}) as world:
        region = Watched("vim", _CLUSTER, frozenset({("apps/v1", "Deployment")}), frozenset(), 1)
        watch = RegionWatch(world.watching(), region, mark, most=1)
        watch.watch(region)
        given.report(pod(), is_all=True)

        async def is_marked() -> Mapping[Kind, Stale] | None:
            return marked[-1] if marked else None

        (kind, stale), *others = (await until(is_marked)).items()
        assert (kind, others) == (("apps/v1", "Deployment"), [])
        assert "more than 1 kinds" in stale.reason
        await watch.end()


async def test_a_watch_of_which_nothing_is_heard_for_long_is_stale_until_it_is(store: SqliteStore) -> None:
    """API-193: also while none of its calls fails; a watch that begins again, or has no news, lives."""
    marked: list[Mapping[Kind, Stale]] = [{}]

    async def mark(stale: Mapping[Kind, Stale]) -> None:
        marked.append(stale)

    given = FedCluster()
    async with inventory_world(store, cast("Clusters", given), {"vim": _VIM}) as world:
        region = Watched("vim", _CLUSTER, frozenset(), frozenset(), 1)
        watch = RegionWatch(world.watching(), region, mark, registered_s=0.01, silent_s=0.2)
        watch.watch(region)
        given.report(pod(), is_all=True)

        async def is_stale() -> bool:
            return list(marked[-1]) == [("v1", "Pod")]

        async def is_current() -> bool:
            given.given.put_nowait(Seen({}))
            return marked[-1] == {} and len(marked) > 2

        await until_true(is_stale)
        assert marked[-1]["v1", "Pod"].reason == "no event, bookmark or new begin of the watch was seen"
        await until_true(is_current)
        await watch.end()


async def test_the_time_since_when_no_process_watches_is_known(store: SqliteStore) -> None:
    """API-193."""
    async with inventory_world(store, cast("Clusters", FedCluster()), {"vim": _VIM}, lease_s=0.2) as world:
        assert (await world.inventory.watches()).unwatched_since == "", "none has watched yet"
        leader = world.start()

        async def is_watching() -> bool:
            return (await world.inventory.health()).watching

        await until_true(is_watching)
        assert (await world.inventory.watches()).unwatched_since == ""
        await leader.die()

        async def is_known() -> bool:
            return (await world.inventory.watches()).unwatched_since != ""

        await until_true(is_known)


@dataclass
class NarrowCluster:
    """A cluster whose credentials may watch single namespaces only, each with one pod."""

    watched: set[str] = field(default_factory=set)
    gone: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """Set when the pod of a namespace is to go."""

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        return PODS if kind == "Pod" else None

    async def follow_kept(
        self, resource: Resource, keep: Callable[[Any], SeenObject], parts: Sequence[Sequence[str]], **where: str
    ) -> AsyncGenerator[Seen[SeenObject], None]:
        namespace = where["namespace"]
        if not namespace:
            raise Forbidden("list of pods", "forbidden", http_status=403)
        self.watched.add(namespace)
        try:
            body = pod(of=f"i-{namespace}")
            body["metadata"]["namespace"] = namespace
            yield Seen({"web-1": keep(body)}, is_all=True)
            await self.gone[namespace].wait()
            yield Seen({}, gone=("web-1",))
            await asyncio.Event().wait()
        finally:
            self.watched.discard(namespace)

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[NarrowCluster]:
        yield self


async def test_namespaces_that_come_and_go_use_up_no_watches(store: SqliteStore) -> None:
    """MC-108: with credentials that may not watch all namespaces at once."""
    given, releases = NarrowCluster(), StoredReleases(store, noted_s=0)

    async def save(namespace: str) -> None:
        entry = Entry(ObjectKey("v1", "Pod", namespace, "web-1"), "f.yaml", "d")
        await releases.save(Release(f"i-{namespace}", _CLUSTER, entries=[entry], vim_id="vim"))

    def watches(*namespaces: str) -> Callable[[], Awaitable[bool]]:
        async def are_there() -> bool:
            return given.watched == set(namespaces)

        return are_there

    async with inventory_world(store, cast("Clusters", given), {"vim": _VIM}) as world:

        async def is_found() -> bool:
            return [each.name for each in await world.found(namespace="d")] == ["web-1"]

        for namespace in ("a", "b", "c"):
            await save(namespace)
        world.start(look_s=0.002, most=3)
        await until_true(watches("a", "b", "c"))
        await save("d")
        for namespace in ("a", "b"):
            given.gone[namespace].set()
            await releases.delete(f"i-{namespace}")
        await until_true(watches("c", "d"))
        # A namespace that comes back is watched again.
        given.gone.clear()
        await save("a")
        await until_true(watches("a", "c", "d"))
        await until_true(is_found)
        stored = await store.get(REGIONS, "vim")
        assert stored is not None
        assert stored.body["namespaces"] == ["a", "c", "d"]


async def test_a_region_has_the_kinds_of_releases_whatever_other_processes_have_noted(store: SqliteStore) -> None:
    """The one process knew the kind of an earlier release, with which the region has gone."""
    one, other = StoredReleases(store, noted_s=0), StoredReleases(store)
    await one.save(a_release("i1", "ConfigMap", "Secret"))
    await one.delete("i1")
    (region,) = await StoredRegions(store, SystemClock()).all()
    assert await StoredRegions(store, SystemClock()).remove(region)
    stored = await other.save(a_release("i2", "ConfigMap"))
    await one.save(replace(stored, entries=a_release("i2", "ConfigMap", "Secret").entries))
    (region,) = await StoredRegions(store, SystemClock()).all()
    assert region.kinds == {("v1", "ConfigMap"), ("v1", "Secret")}


async def test_a_cluster_that_is_two_vims_is_used_by_those_that_have_releases(store: SqliteStore) -> None:
    regions, releases = StoredRegions(store, SystemClock()), StoredReleases(store)
    first, second = (Watched(vim_id, _CLUSTER, frozenset(), frozenset(), 1) for vim_id in ("vim", "twin"))
    await releases.save(a_release("i1", "ConfigMap"))
    assert (await regions.is_used(first), await regions.is_used(second)) == (True, False)
    # As an earlier version has stored it: without its VIM.
    await releases.save(a_release("i2", "ConfigMap", vim_id=""))
    assert await regions.is_used(second)
    assert await store.get(REGIONS, "twin") is None
