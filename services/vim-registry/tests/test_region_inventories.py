"""When inventories of cloud regions are read again (multicloud.md MC-078, MC-079)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.kubeconfig import Allowed
from kubevnfm_clients.multicloud.region_inventories import AaiInventory, ClusterProfileInventory
from kubevnfm_clients.multicloud.region_views import InventoryHealth
from kubevnfm_kit.clock import SystemClock
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_vim_registry.domain.errors import InventoryAway, InventoryLost, InventoryRefused
from kubevnfm_vim_registry.domain.inventories import InventoryState, Pulled, described
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.domain.region import RegionFacts
from kubevnfm_vim_registry.records import COLLECTION, StoredVim, VimRecords
from kubevnfm_vim_registry.region_access import GivenAccess, RegionAccess
from kubevnfm_vim_registry.region_inventories import RegionInventories
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from worlds.vim_world import RING

EARLY = "2026-01-01T00:00:00.000Z"
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: c}}]
clusters: [{name: c, cluster: {server: 'https://192.0.2.1', insecure-skip-tls-verify: true}}]
users: [{name: c, user: {token: swordfish}}]
"""


@dataclass
class Inventories:
    """Both ports of inventories, with one answer."""

    answer: Pulled | InventoryRefused = field(default_factory=lambda: Pulled(KUBECONFIG))
    readings: int = 0
    now: int = 0
    most_at_a_time: int = 0

    async def read(self, *_: object) -> Pulled:
        self.readings += 1
        self.now += 1
        self.most_at_a_time = max(self.most_at_a_time, self.now)
        # Other readings may begin.
        await asyncio.sleep(0)
        self.now -= 1
        if isinstance(self.answer, InventoryRefused):
            raise self.answer
        return self.answer


@dataclass
class Used:
    """The part of `Regions` that takes what was read."""

    given: list[GivenAccess] = field(default_factory=list)

    async def use(self, stored: StoredVim, given: GivenAccess) -> None:
        self.given.append(given)


@dataclass
class Seconds:
    """The clock of rounds."""

    now_s: float = 0.0


@dataclass
class World:
    records: VimRecords
    inventories: RegionInventories
    source: Inventories
    used: Used
    clock: Seconds
    started: Callable[[], RegionInventories]
    """Returns the inventories of a process that has just started."""

    async def readings_at(self, now_s: float) -> int:
        """Run a round at this time; return how many readings there have been."""
        self.clock.now_s = now_s
        await self.inventories.read_due()
        return self.source.readings

    async def health(self) -> InventoryHealth:
        facts = (await self.records.get("vim")).vim.region
        assert facts is not None
        assert facts.inventory_state is not None
        return facts.inventory_state.health


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with (
        SqliteStore.open(tmp_path / "store.db") as store,
        InProcessBus(RING) as bus,
        OutboxRelay(store, bus, collections=[COLLECTION]) as relay,
    ):
        records = VimRecords(store, Outbox(store, relay, RING), RING, SystemClock())
        await records.prepare()
        source, used = Inventories(), Used()
        access = RegionAccess(records, source, source, RING, Allowed(True), 300.0)
        clock = Seconds()

        def started() -> RegionInventories:
            return RegionInventories(
                records, access, used, at_a_time=4, monotonic=lambda: clock.now_s, spread=lambda: 1.0
            )

        await records.insert(a_region("vim", "edge", AaiInventory(type="aai", url="http://192.0.2.1", path="/a")))
        await records.insert(a_region("other", "plain", None))
        yield World(records, started(), source, used, clock, started)


def a_region(vim_id: str, name: str, inventory: AaiInventory | ClusterProfileInventory | None) -> VimRecord:
    state = InventoryState(health=InventoryHealth(since=EARLY)) if inventory is not None else None
    facts = RegionFacts(
        id=f"op/{name}", cloud_owner="op", cloud_region=name, inventory=inventory, inventory_state=state
    )
    times = {"created_at": EARLY, "updated_at": EARLY}
    return VimRecord(
        id=vim_id,
        name=f"op/{name}",
        tenant_id="default",
        type="kubernetes",
        auth_url="https://a",
        region=facts,
        **times,
    )


async def test_an_inventory_is_read_every_refresh_seconds(world: World) -> None:
    assert [await world.readings_at(at) for at in (0, 299, 300, 599, 600)] == [0, 0, 1, 1, 2]
    assert [given.sha256 for given in world.used.given] == [world.used.given[0].sha256] * 2


async def test_an_inventory_that_does_not_answer_is_read_after_growing_pauses(world: World) -> None:
    """MC-079: the copy stays, and the reason is shown once."""
    assert await world.readings_at(0) == 0
    world.source.answer = InventoryAway("inventory/url", "A&AI answered 503")
    assert [await world.readings_at(at) for at in (300, 309, 310, 329, 330, 369, 370)] == [1, 1, 2, 2, 3, 3, 4]
    failed = await world.health()
    assert (failed.reason, failed.lost) == ("inventory/url: A&AI answered 503", False)
    assert failed.since > EARLY
    revision = (await world.records.get("vim")).revision
    assert await world.readings_at(1000) == 5
    assert (await world.records.get("vim")).revision == revision
    assert not world.used.given
    # The longest pause is that of a working inventory.
    assert [await world.readings_at(at) for at in (1160, 1460, 1759, 1760)] == [6, 7, 7, 8]
    world.source.answer = Pulled(KUBECONFIG)
    assert [await world.readings_at(at) for at in (2060, 2359, 2360)] == [9, 9, 10]


async def test_a_reading_comes_soon_after_a_start_or_a_shorter_pause(world: World) -> None:
    """MC-078, MC-079: a process may end before the longest pause; a failed reading is repeated by the next one."""

    async def set_refresh(seconds: int) -> None:
        stored = await world.records.get("vim")
        facts = stored.vim.region
        assert facts is not None
        inventory = AaiInventory(type="aai", url="http://192.0.2.1", path="/a", refresh=seconds)
        region = facts.model_copy(update={"inventory": inventory})
        await world.records.replace(stored, stored.vim.model_copy(update={"region": region}))

    await set_refresh(86_400)
    assert [await world.readings_at(at) for at in (0, 299, 300, 10_000)] == [0, 0, 1, 1]
    await set_refresh(60)
    assert [await world.readings_at(at) for at in (10_001, 10_060, 10_061)] == [1, 1, 2]
    world.source.answer = InventoryAway("inventory/url", "A&AI answered 503")
    assert await world.readings_at(10_121) == 3
    world.inventories = world.started()
    assert [await world.readings_at(at) for at in (10_122, 10_131, 10_132)] == [3, 3, 4]


async def test_a_region_stays_lost_while_the_inventory_does_not_answer(world: World) -> None:
    """MC-078: one that answers 404 and 503 in turn publishes one event."""
    found = list[tuple[bool, str]]()
    for at, error in enumerate((InventoryLost, InventoryAway, InventoryLost, InventoryRefused), start=1):
        world.source.answer = error("inventory/url", f"answer {at}\u202e")
        world.clock.now_s = at * 1000.0
        await world.inventories.rejected("vim")
        health = await world.health()
        found.append((health.lost, health.reason))
    assert [lost for lost, _ in found] == [True, True, True, False]
    assert found[0][1] == "inventory/url: answer 1\ufffd"


async def test_rejections_of_many_regions_read_no_more_at_a_time_than_rounds_do(world: World) -> None:
    inventory = AaiInventory(type="aai", url="http://192.0.2.1", path="/a")
    names = [f"r{n}" for n in range(12)]
    for name in names:
        await world.records.insert(a_region(name, name, inventory))
    world.clock.now_s = 1000.0
    await asyncio.gather(world.inventories.read_due(), *(world.inventories.rejected(name) for name in names))
    assert world.source.readings == 12
    assert world.source.most_at_a_time <= 4


async def test_a_rejection_is_followed_by_one_reading_in_ten_seconds(world: World) -> None:
    await world.inventories.rejected("other")
    await world.inventories.rejected("none")
    assert world.source.readings == 0
    for at in (1.0, 5.0, 10.9, 11.0):
        world.clock.now_s = at
        await world.inventories.rejected("vim")
    assert world.source.readings == 2
    assert [await world.readings_at(at) for at in (310, 311)] == [2, 3]


def test_labels_and_properties_of_a_profile_are_bounded() -> None:
    """They are of another cluster: what no region could have is left out."""
    labels = {"tier": "edge", "Bad Key": "x", "long": "x" * 64, "number": 4}
    properties = [{"name": "a", "value": "1"}, {"name": "$a", "value": "1"}, {"name": "b", "value": 1}, "c"]
    status = {"properties": [*properties, *({"name": str(n), "value": "x" * 1024} for n in range(100))]}
    found = described({"metadata": {"labels": labels}, "status": status}, KUBECONFIG)
    assert found.labels == {"tier": "edge"}
    assert found.kv["a"] == "1"
    assert len(found.kv) == 64
    many = {f"l{n}": "" for n in range(65)}
    assert described({"metadata": {"labels": many}}, KUBECONFIG).labels == {}
    assert described({"metadata": [], "status": "x"}, KUBECONFIG).kv == {}
