"""Regions that do not answer, and regions that no VNF uses any more (multicloud.md MC-055, MC-142)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.adapters.leases import LEADER
from kubevnfm_infra_k8s.adapters.stored_inventory import OBJECTS, REGIONS, StoredRegions
from kubevnfm_infra_k8s.adapters.turns import TURNS
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable
from kubevnfm_infra_k8s.domain.inventory.kind_watch import KindWatch
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord, record_id
from kubevnfm_infra_k8s.domain.inventory.starts import Starts
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Clusters, Seen
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_secrets import Secret
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until, until_true
from servers.loopback import next_address
from worlds.inventory_world import inventory_world

_AWAY = "https://127.0.0.1:1"


def a_record(name: str) -> ObjectRecord:
    values = {"vim_id": "away", "vnf_instance_id": "i9", "api_version": "v1", "kind": "Pod", "namespace": "ns"}
    key = record_id("away", "", "Pod", "ns", name)
    return ObjectRecord.model_validate({**values, "id": key, "name": name, "uid": "u9"})


def a_pod(name: str) -> dict[str, Any]:
    labels = {"kubevnfm.io/vnf-instance-id": "i-all"}
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"u{name}", "labels": labels}}


def a_release(vim_id: str) -> Release:
    entry = Entry(ObjectKey("apps/v1", "Deployment", "ns", "web"), "f.yaml", "d")
    return Release(f"i-{vim_id}", _AWAY, entries=[entry], vim_id=vim_id)


async def test_a_region_that_is_away_shows_since_when_and_holds_up_no_other(
    site: Any, store: SqliteStore, workload: Any
) -> None:
    """And what is left of it goes once no VNF has objects there."""
    away = site.vim.model_copy(update={"vim_id": "away", "interface_info": {"endpoint": _AWAY}})
    vims: dict[str, VimConnection] = {"away": away, "vim": site.vim}
    async with inventory_world(store, site.clusters, vims) as world:
        releases = StoredReleases(store)
        entry = Entry(ObjectKey("apps/v1", "Deployment", "ns", "web"), "f.yaml", "d")
        await releases.save(Release("i9", _AWAY, entries=[entry], vim_id="away"))
        record = a_record("web-1")
        await store.insert(OBJECTS, record.id, record.document())
        world.start(look_s=0.01)
        await site.registered().apply({"f.yaml": workload(replicas=1)})

        async def of_the_other() -> InventoryResource | None:
            found = await world.found(kind="Pod", cloud_region_id="op/vim")
            return found[0] if found and found[0].node and found[0].watch == "current" else None

        await until(of_the_other)

        async def is_marked() -> InventoryResource | None:
            (found,) = await world.found(cloud_region_id="op/away")
            return found if found.watch_detail.startswith(_AWAY) else None

        shown = await until(is_marked)
        assert (shown.name, shown.watch.partition(" 2")[0]) == ("web-1", "stale since")
        # For the alarms: by region, with the kind that cannot be watched for the longest time.
        report = await world.inventory.watches()
        assert (report.unwatched_since, [each.vim_id for each in report.regions]) == ("", ["away"])
        assert report.regions[0].reason.startswith(_AWAY)
        assert await world.inventory.watches("away") == report
        assert (await world.inventory.watches("vim")).regions == []
        await releases.delete("i9")

        async def is_gone() -> bool:
            return not await world.found(cloud_region_id="op/away") and await store.get(REGIONS, "away") is None

        await until_true(is_gone)
        assert [each.change for each in world.events_of("web-1")] == ["vanished"]
        assert await store.get(REGIONS, "vim") is not None


async def test_objects_go_with_their_kind_at_the_second_look(store: SqliteStore, site: Any, workload: Any) -> None:
    """A server that starts serves custom kinds a moment after the others: what they have is not gone."""
    async with inventory_world(store, site.clusters, {"vim": site.vim}) as world:
        await site.registered().apply({"f.yaml": workload(replicas=1)})
        values = {"vim_id": "vim", "vnf_instance_id": "i1", "api_version": "a.b/v1", "kind": "Thing", "namespace": "ns"}
        record = ObjectRecord.model_validate(
            {**values, "id": record_id("vim", "a.b", "Thing", "ns", "one"), "name": "one", "uid": "u1"}
        )
        await store.insert(OBJECTS, record.id, record.document())
        watching = world.watching()
        states: list[bool] = []

        def report(error: Exception | None) -> None:
            states.append(error is None)

        watch = KindWatch(watching, "vim", site.vim.interface_info["endpoint"], "a.b/v1", "Thing", "", report, 0.01)
        running = asyncio.create_task(watch.run())

        async def is_gone() -> bool:
            return not await world.found(kind="Thing")

        await until_true(is_gone)
        running.cancel()
        assert states[:2] == [False, True]


async def test_a_region_that_is_registered_with_another_cluster_shows_what_that_has(
    store: SqliteStore, site: Any, workload: Any, labs: LabClusters
) -> None:
    """The watches of the first one still work, and would never end."""
    vims = {"vim": site.vim}
    async with inventory_world(store, site.clusters, vims) as world:
        world.start(registered_s=0.01)
        await site.registered().apply({"f.yaml": workload(replicas=1)})

        async def is_shown() -> bool:
            return len(await world.found(kind="Pod")) == 1

        await until_true(is_shown)
        other = await labs.create(
            address=next_address(), version="v1.31.4", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
        )
        access = {"bearer_token": Secret(other.admin_token)}
        interface = {"endpoint": other.endpoint, "ssl_ca_cert": other.ca_pem}
        vims["vim"] = site.vim.model_copy(update={"interface_info": interface, "access_info": access})

        async def is_gone() -> bool:
            return not await world.found() and [each.change for each in world.events][-1:] == ["vanished"]

        await until_true(is_gone)


async def test_a_failure_of_the_database_loses_no_region_that_is_new(store: SqliteStore, site: Any) -> None:
    async with inventory_world(store, site.clusters, {}) as world:
        process = world.start(look_s=0.01)

        async def leads() -> bool:
            return await store.get(TURNS, LEADER) is not None

        await until_true(leads)
        process.store.cut_after = "update"
        for vim_id in ("one", "two"):
            await StoredReleases(store).save(a_release(vim_id))

        async def is_cut() -> bool:
            return process.store.is_cut

        await until_true(is_cut)
        process.store.cut_after, process.store.is_cut = "", False

        async def are_marked() -> bool:
            return all("watch" in each.body for each in await store.find(REGIONS, Query()))

        await until_true(are_marked)


async def test_a_process_that_dies_while_it_forgets_a_region_leaves_nothing(store: SqliteStore, site: Any) -> None:
    async with inventory_world(store, site.clusters, {}, lease_s=1.0) as world:
        releases = StoredReleases(store)
        await releases.save(a_release("away"))
        record = a_record("web-1")
        await store.insert(OBJECTS, record.id, record.document())
        first = world.start(look_s=0.01)
        first.store.cut_after = "delete"
        await releases.delete("i-away")

        async def is_cut() -> bool:
            return first.store.is_cut

        await until_true(is_cut)
        await first.die()
        world.start(look_s=0.01)

        async def is_gone() -> bool:
            return not await store.find(OBJECTS, Query()) and not await store.find(REGIONS, Query())

        await until_true(is_gone)


async def test_access_data_of_a_request_bring_nothing_into_the_region_whose_id_they_have(
    store: SqliteStore, site: Any, workload: Any
) -> None:
    """They may lead to any cluster, whose kinds and namespaces would have the region of another operator watched for them."""
    await site.apply({"f.yaml": workload(replicas=1)})
    assert await store.find(REGIONS, Query()) == []
    await site.registered().apply({"f.yaml": workload(replicas=1)}, operation="op2")
    assert [each.id for each in await store.find(REGIONS, Query())] == ["vim"]


@dataclass
class ManyRegions:
    """`domain.ports.Clusters`: regions, some of which never answer."""

    silent: frozenset[str]
    refusing: frozenset[str] = frozenset()
    pods: int = 0
    """In each region."""
    asked: list[str] = field(default_factory=list)
    beginning: int = 0
    """Watches of regions that answer, before they have listed."""
    most: int = 0

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[ManyRegions]:
        assert vim.vim_id is not None
        self.asked.append(vim.vim_id)
        if vim.vim_id in self.silent:
            await asyncio.Event().wait()
        if vim.vim_id in self.refusing:
            raise ClusterUnavailable(f"{vim.vim_id}: no answer")
        self.beginning += 1
        self.most = max(self.most, self.beginning)
        yield self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    async def follow_metadata(self, *_: object, **__: object) -> AsyncGenerator[Seen[Any], None]:
        # No time: those that wait for a processor would have their turns beside them.
        for _turn in range(5):
            await asyncio.sleep(0)
        self.beginning -= 1
        yield Seen({}, is_all=True)
        await asyncio.Event().wait()

    async def follow_kept(
        self, resource: Resource, keep: Callable[[Any], Any], *_: object, **__: object
    ) -> AsyncGenerator[Seen[Any], None]:
        async for seen in self.follow_metadata():
            yield replace(seen, found={f"ns/{name}": keep(a_pod(name)) for name in map(str, range(self.pods))})


async def test_a_start_lists_some_regions_at_a_time_and_those_that_do_not_answer_hold_it_up_for_a_moment(
    store: SqliteStore,
) -> None:
    """MC-142: 500 regions at once are thousands of TLS handshakes, of which the last ones take too long for their time limit."""
    names = [f"vim-{number}" for number in range(40)]
    regions = ManyRegions(silent=frozenset(names[:15]))
    vims = {name: VimConnection(vim_id=name) for name in names}
    async with inventory_world(store, cast("Clusters", regions), vims) as world:
        for name in names:
            await StoredReleases(store).save(a_release(name))
        world.start(starts=Starts(at_once=4, longest_s=0.05))
        answering = [(name, ("v1", "Pod")) for name in names[15:]]

        async def are_listed() -> bool:
            return not await StoredRegions(store, SystemClock()).stale(answering)

        await until_true(are_listed)
    # Watches of a region that takes longer than a turn are beside the four.
    assert 0 < regions.most <= 16


async def test_a_region_that_does_not_answer_has_one_turn_at_a_time_however_many_kinds_are_watched_in_it() -> None:
    """MC-083, MC-142: with ten kinds in each, 100 silent regions before an answering one would hold it up for more than two minutes."""
    starts, fails = Starts(at_once=2, longest_s=0.02), asyncio.Event()
    silent: list[str] = []
    before: list[int] = []
    """The turns of silent regions before each watch of the answering one has listed."""

    async def watch(vim_id: str) -> None:
        with suppress(TimeoutError):
            async with starts.turn(vim_id) as answered:
                if vim_id != "answering":
                    silent.append(vim_id)
                    await fails.wait()
                    raise TimeoutError
                await asyncio.sleep(0)
                before.append(len(silent))
                answered()
                await fails.wait()

    async def are_listed() -> bool:
        return len(before) == 10

    async with asyncio.TaskGroup() as group:
        for name in [*(f"silent-{number}" for number in range(6)), "answering"]:
            for _kind in range(10):
                group.create_task(watch(name))
        await until_true(are_listed)
        fails.set()
    # One of each before the first watch of the answering region, and one or two of each before its other watches.
    assert max(before) <= 18
    # Those that have failed have left their turns.
    async with asyncio.timeout(60), starts.turn("silent-0"), starts.turn("answering"):
        pass


async def test_a_process_that_takes_over_lists_first_what_the_other_one_has_not(store: SqliteStore) -> None:
    """MC-142: a start that always begins with the same regions would never come to the last ones if its lease were lost each time."""
    names = [f"vim-{number}" for number in range(9)]
    # The process that starts first comes to the fifth region and no further.
    regions = ManyRegions(silent=frozenset(names[4:]), refusing=frozenset(names[:1]))
    vims = {name: VimConnection(vim_id=name) for name in names}
    async with inventory_world(store, cast("Clusters", regions), vims, lease_s=0.5) as world:
        for name in names:
            entry = Entry(ObjectKey("v1", "Pod", "ns", "one"), "f.yaml", "d")
            await StoredReleases(store).save(Release(f"i-{name}", _AWAY, entries=[entry], vim_id=name))
        first = world.start(starts=Starts(at_once=1, longest_s=3600))

        async def are_listed() -> bool:
            found = await StoredRegions(store, SystemClock()).all()
            return [each.vim_id for each in found if each.term] == names[:4]

        await until_true(are_listed)
        await first.die()
        regions.silent = frozenset()
        regions.asked.clear()
        world.start(starts=Starts(at_once=1, longest_s=3600))

        async def are_asked() -> bool:
            return len(set(regions.asked)) == len(names)

        await until_true(are_asked)
        assert list(dict.fromkeys(regions.asked)) == [*names[4:], *names[1:4], names[0]]


@dataclass
class CountingStore:
    """A store that counts the records which are being inserted."""

    store: SqliteStore
    inserting: int = 0
    most: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def insert(self, collection: str, *args: Any, **more: Any) -> Any:
        counts = collection == OBJECTS
        self.inserting += counts
        self.most = max(self.most, self.inserting)
        try:
            return await self.store.insert(collection, *args, **more)
        finally:
            self.inserting -= counts


async def test_the_lease_waits_for_few_of_the_records_of_a_start(store: SqliteStore) -> None:
    """MC-142: the records of all regions at once would be ahead of the renewal of the lease, and of the writes of operations."""
    names = [f"vim-{number}" for number in range(8)]
    counting = CountingStore(store)
    vims = {name: VimConnection(vim_id=name) for name in names}
    given = cast("Clusters", ManyRegions(silent=frozenset(), pods=50))
    async with inventory_world(cast("DocumentStore", counting), given, vims) as world:
        for name in names:
            await StoredReleases(store).save(a_release(name))
        await StoredReleases(store).save(Release("i-all", _AWAY, entries=a_release("").entries))
        world.start()

        async def are_written() -> bool:
            return len(await store.find(OBJECTS, Query())) == len(names) * 50

        await until_true(are_written)
    assert 0 < counting.most <= 128
