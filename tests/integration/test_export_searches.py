"""The searches of the export to A&AI have their indexes on MongoDB."""

from __future__ import annotations

import time

import pytest
from kubevnfm_store.mongo.store import MongoStore
from patience import until_true
from servers.mongo_indexes import IndexUse
from servers.mongodb import mongodb_url
from worlds.export_world import a_link, export_world, features

__all__ = ["mongodb_url"]
pytestmark = pytest.mark.server


async def test_each_search_of_the_export_has_an_index(mongodb_url: str) -> None:
    """MC-110, MC-111: to find what waits, what was refused and the last objects of a VNF, and to begin again."""
    use = IndexUse()
    async with (
        MongoStore.connect(mongodb_url, f"test_{time.time_ns()}", listeners=[use]) as store,
        export_world(store) as world,
    ):
        world.regions.seen = features({"feature.node.kubernetes.io/memory-numa": {"true": 3}})
        world.start()
        await world.features.found("vim", "one")
        link = await world.links.insert(a_link())
        await world.write("web-1")
        await world.write("web-2")
        await world.settled()
        world.aai.refused["vservers/vserver"] = 400, 2
        await world.write("web-1", phase="Failed")

        async def is_refused() -> bool:
            return (await world.health()).refused == 1

        await until_true(is_refused)
        assert await world.state.lags()
        for name in ("web-1", "web-2"):
            await world.remove(name)
        await world.links.delete(link)
        await world.state.resync()
        await world.settled()
        assert [world.aai.paths(kind) for kind in ("vserver", "generic-vnf", "l3-network")] == [[], [], []]
    assert {str(each) for each in use.unserved} == set()
    # Others are for what users search, and for the reconciler.
    exported = {each for each in use.unused if "export" in each or "gone" in each}
    assert exported == set()
