"""A process dies before and after each write and each publish of an alarm's life; the next one continues."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import Envelope
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Conflict
from kubevnfm_lcm_api.faults.alarms import COLLECTION, OPEN, Alarms
from kubevnfm_lcm_api.faults.watch import FaultWatch
from kubevnfm_lcm_api.faults.wiring import INDEXES
from kubevnfm_lcm_api.lifecycle.core.drift import KEY
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Compare, Op, Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from worlds.alarm_world import no_services
from worlds.inventory_world import GivenInventory
from worlds.lcm_builders import an_instance
from worlds.lcm_world import RING, TwinVims

DRIFT = {"state": "CHANGED", "since": "2030-01-02T03:04:05.000Z", "reason": "an object was changed"}
WRITES = {"insert", "update", "replace", "clear_outbox"}


class Death:
    """The moment at which a process dies: before or after one of its writes and publishes."""

    def __init__(self, number: int, *, is_after: bool) -> None:
        self.number, self.is_after, self.has_come = number, is_after, False

    async def meet(self, act: Callable[[], Awaitable[Any]]) -> Any:
        """Do what the process does, unless it dies before."""
        self.number -= 1
        if self.number == 0 and self.is_after:
            await act()
        if self.number == 0:
            self.has_come = True
        if self.has_come:
            raise StoreUnavailable("the process has died")
        return await act()


class Mortal:
    """The store, or the bus, of a process that dies."""

    def __init__(self, of: Any, death: Death) -> None:
        self._of, self._death = of, death

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._of, name)

        async def call(*given: Any, **more: Any) -> Any:
            if name in WRITES or name == "publish":
                return await self._death.meet(lambda: act(*given, **more))
            if self._death.has_come:
                raise StoreUnavailable("the process has died")
            return await act(*given, **more)

        return call


class Published:
    """The broker."""

    def __init__(self) -> None:
        self.events: list[Envelope[Any]] = []

    async def publish(self, envelope: Envelope[Any]) -> None:
        self.events.append(envelope)


class Process:
    """A gateway that looks at one VNF instance, publishes, and serves one caller."""

    def __init__(self, store: SqliteStore, bus: Published, death: Death) -> None:
        mortal: Any = Mortal(store, death)
        bus_of_it: Any = Mortal(bus, death)
        self.store, self.death = store, death
        self.relay = OutboxRelay(mortal, bus_of_it, collections=[COLLECTION], settle_s=0)
        clock = SystemClock()
        self.alarms = Alarms(store=mortal, outbox=Outbox(mortal, self.relay, RING), clock=clock)
        self.watch = FaultWatch(
            store=mortal,
            alarms=self.alarms,
            vims=TwinVims(),
            inventory=GivenInventory(),
            services=no_services,
            clock=clock,
        )

    async def do(self, step: str) -> None:
        """Do a step of the alarm's life, and publish what is left. Raises StoreUnavailable if the process has died."""
        if step == "acknowledge":
            (alarm,) = await self.store.find(COLLECTION, Query(Compare(OPEN, Op.GT, [""])))
            with suppress(Conflict):  # the caller repeats it: it was done before the process died
                await self.alarms.acknowledge(alarm.id, "ACKNOWLEDGED", check=lambda _: None)
        else:
            await self.watch.look_at_vnf("one")
        await self.relay.idle()
        await self.relay.sweep()
        await self.relay.idle()
        if self.death.has_come:
            raise StoreUnavailable("the process has died")


async def live(store: SqliteStore, bus: Published, death: Death) -> None:
    """Go through the life of an alarm; a process that dies is followed by one that does not."""
    states: list[tuple[str, dict[str, Any]]] = [
        ("raise", {KEY: DRIFT}),
        ("change", {KEY: {**DRIFT, "state": "MISSING"}}),
        ("acknowledge", {KEY: {**DRIFT, "state": "MISSING"}}),
        ("clear", {}),
        ("raise again", {KEY: DRIFT}),
    ]
    process = Process(store, bus, death)
    for step, metadata in states:
        await store.update(INSTANCES, "one", {"metadata": metadata})
        try:
            await process.do(step)
        except StoreUnavailable:
            process = Process(store, bus, Death(0, is_after=False))
            await process.do(step)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "store.db") as opened:
        for collection, indexes in INDEXES.items():
            await opened.ensure_indexes(collection, indexes)
        await opened.insert(INSTANCES, "one", an_instance(id="one").document(RING))
        yield opened


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_a_death_at_any_write_or_publish_loses_doubles_and_reorders_nothing(
    store: SqliteStore, *, is_after: bool
) -> None:
    """API-196: raised, changed, acknowledged, cleared, raised again."""
    number, has_died = 0, True
    while has_died:
        number += 1
        await store.delete_many(COLLECTION, Compare("managedObjectId", Op.EQ, ["one"]))
        bus, death = Published(), Death(number, is_after=is_after)
        await live(store, bus, death)
        has_died = death.has_come
        found = await store.find(COLLECTION, Query(Compare("managedObjectId", Op.EQ, ["one"])))
        cleared, again = sorted((each.body for each in found), key=lambda each: "open" in each["internal"])
        assert (cleared["perceivedSeverity"], cleared["ackState"], again["ackState"]) == (
            "CRITICAL", "ACKNOWLEDGED", "UNACKNOWLEDGED",
        ), number  # fmt: skip
        assert cleared["alarmChangedTime"] <= cleared["alarmClearedTime"]
        assert await store.pending_outbox(COLLECTION) == []
        # Each event at least once, with one content; each names the one before it, by which notifications are sent in order.
        events = {each.id: each.data for each in bus.events}
        assert all(events[each.id] == each.data for each in bus.events)
        chain = [each for each in events.values() if each.alarm_id == cleared["id"]]
        assert [each.change for each in chain] == ["RAISED", "CHANGED", "CLEARED"], number
        assert [each.follows for each in chain] == ["", *list(events)[:2]], number
        assert [each.change for each in events.values() if each.alarm_id == again["id"]] == ["RAISED"], number
        assert len(events) == 4
        assert cleared["internal"]["events"] == 3
    # Each write with its event, the publish of the event, its removal from the outbox; and the acknowledgement, which has no event.
    assert number - 1 == 4 * 3 + 1
