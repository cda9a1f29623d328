"""Regions that do not answer, and regions that no VNF uses any more (multicloud.md MC-055, MC-142)."""

from __future__ import annotations

import asyncio
from typing import Any

from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.adapters.stored_inventory import OBJECTS, REGIONS
from kubevnfm_infra_k8s.domain.inventory.kind_watch import KindWatch
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord, record_id
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until, until_true
from worlds.inventory_world import inventory_world

_AWAY = "https://127.0.0.1:1"


def a_record(name: str) -> ObjectRecord:
    values = {"vim_id": "away", "vnf_instance_id": "i9", "api_version": "v1", "kind": "Pod", "namespace": "ns"}
    key = record_id("away", "", "Pod", "ns", name)
    return ObjectRecord.model_validate({**values, "id": key, "name": name, "uid": "u9"})


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
        await site.apply({"f.yaml": workload(replicas=1)})

        async def of_the_other() -> InventoryResource | None:
            found = await world.found(kind="Pod", cloud_region_id="op/vim")
            return found[0] if found and found[0].node and found[0].watch == "current" else None

        await until(of_the_other)

        async def is_marked() -> InventoryResource | None:
            (found,) = await world.found(cloud_region_id="op/away")
            return found if found.watch_detail.startswith(_AWAY) else None

        shown = await until(is_marked)
        assert (shown.name, shown.watch.partition(" 2")[0]) == ("web-1", "stale since")
        await releases.delete("i9")

        async def is_gone() -> bool:
            return not await world.found(cloud_region_id="op/away") and await store.get(REGIONS, "away") is None

        await until_true(is_gone)
        assert [each.change for each in world.events_of("web-1")] == ["vanished"]
        assert await store.get(REGIONS, "vim") is not None


async def test_objects_go_with_their_kind_at_the_second_look(store: SqliteStore, site: Any, workload: Any) -> None:
    """A server that starts serves custom kinds a moment after the others: what they have is not gone."""
    async with inventory_world(store, site.clusters, {"vim": site.vim}) as world:
        await site.apply({"f.yaml": workload(replicas=1)})
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
