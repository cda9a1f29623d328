"""The stream of server-sent events: filters, resuming, heartbeats, and watchers that are too slow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import Envelope
from kubevnfm_events.lcm import PackageFetched
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lcm_api.notifications.event_feed import EventFeed, Missed, Silence
from kubevnfm_lcm_api.notifications.event_log import COLLECTION, EventLog, LoggedEvent
from kubevnfm_lcm_api.notifications.http import events
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.event_stream import Stream, watching
from worlds.lcm_world import World, lcm_world
from worlds.set_clock import SetClock


async def names(stream: Stream, count: int) -> list[str]:
    return [(await stream.event())["event"] for _ in range(count)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        await running.sample()
        yield running


async def test_the_stream_has_the_events_of_one_instance(world: World) -> None:
    other_id, instance_id = await world.create(), await world.create()
    async with watching(world, vnfInstanceId=instance_id) as stream:
        await world.reached(await world.instantiate(other_id))
        await world.reached(await world.instantiate(instance_id))
        heard = [await stream.event() for _ in range(2)]
    assert {each["data"]["subject"] for each in heard} == {instance_id}
    assert heard[0]["event"] == "lcm.operation.changed"
    assert heard[0]["id"] == heard[0]["data"]["id"]
    assert heard[0]["data"]["data"]["state"] == "STARTING"


async def test_types_are_selected_by_patterns(world: World) -> None:
    wanted = "lcm.operation.changed,kubevnfm.lcm.instance.deleted.v1,infra.*.deleted"
    async with watching(world, type=wanted) as stream:
        instance_id = await world.create()
        operation_id = await world.instantiate(instance_id)
        await world.reached(operation_id)
        assert await names(stream, 3) == ["lcm.operation.changed"] * 3
    async with watching(world, type="lcm.instance.#", instance=instance_id) as stream:
        await world.reached(await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"}))
        (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
        assert await names(stream, 1) == ["lcm.instance.deleted"]


@pytest.mark.parametrize(
    "query", ["smoke=1", "type=", "type=%23.%23", "type=" + ",".join(["a"] * 21), "instance=a&vnfInstanceId=b"]
)
async def test_a_malformed_filter_is_refused(world: World, query: str) -> None:
    """API-012."""
    (await world.call("GET", f"/kubevnfm/v1/events?{query}")).problem(400)


async def test_a_stream_that_takes_no_events_is_refused(world: World) -> None:
    """API-007."""
    answer = await world.call("GET", "/kubevnfm/v1/events", headers={"Accept": "application/json"})
    answer.problem(406)


async def test_an_operation_is_shown_and_then_followed(world: World) -> None:
    world.twins.waiting.add("infra.openstack.create_resources")
    operation_id = await world.instantiate(await world.create())
    await world.twins.has_asked(1)
    async with watching(world, f"/kubevnfm/v1/operations/{operation_id}") as stream:
        shown = await stream.event()
        assert (shown["event"], shown["data"]["id"], shown["data"]["state"]) == (
            "operation",
            operation_id,
            "PROCESSING",
        )
        await world.twins.release()
        received: list[Any] = []
        while not received or received[-1]["data"]["data"].get("state") != "COMPLETED":
            received.append(await stream.event())
    assert {each["data"]["operationid"] for each in received} == {operation_id}


async def test_a_watcher_goes_on_where_it_left_off(world: World) -> None:
    async with watching(world, type="lcm.#") as stream:
        first = await world.create()
        left_at = await stream.event()
    second = await world.create()
    third = await world.create()
    async with watching(world, after=left_at["id"], type="lcm.#") as stream:
        heard = [(await stream.event())["data"]["subject"] for _ in range(2)]
        fourth = await world.create()
        heard.append((await stream.event())["data"]["subject"])
    assert left_at["data"]["subject"] == first
    assert heard == [second, third, fourth]


async def test_a_watcher_goes_on_after_a_restart_of_the_gateway(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        async with watching(world, type="lcm.instance.*") as stream:
            await world.create()
            left_at = await stream.event()
        second = await world.create()
        await world.bus.quiet()
    async with lcm_world(tmp_path) as world:
        third = await world.create()
        async with watching(world, after=left_at["id"], type="lcm.instance.*") as stream:
            fourth = await world.create()
            heard = [(await stream.event())["data"]["subject"] for _ in range(3)]
    assert heard == [second, third, fourth]


async def test_the_stream_goes_on_from_the_state_that_a_view_has_shown(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        first = await world.create()
        operation_id = await world.instantiate(first)
        await world.reached(operation_id)
        shown = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
        second = await world.create()
        async with watching(world, after=shown["sequence"], type="lcm.instance.created") as stream:
            assert (await stream.event())["data"]["subject"] == second
        await world.bus.quiet()
    async with lcm_world(tmp_path) as world:  # it has received no event yet
        shown = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
        assert shown["state"] == "COMPLETED"
        third = await world.create()
        async with watching(world, after=shown["sequence"], type="lcm.instance.created") as stream:
            # Clocks of machines may differ, so what happened just before may come once more.
            heard = [(await stream.event())["data"]["subject"]]
            while heard[-1] != third:
                heard.append((await stream.event())["data"]["subject"])
            assert set(heard) <= {first, second, third}


async def test_a_watcher_learns_that_it_may_have_missed_events(world: World) -> None:
    async with watching(world, after="long-ago") as stream:
        missed = await stream.event()
        await world.create()
        assert (await stream.event())["event"] == "lcm.instance.created"
    assert (missed["event"], missed["data"]) == ("missed", {"lastEventId": "long-ago"})
    assert "id" not in missed


async def test_a_quiet_stream_has_heartbeats(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_HEARTBEAT_S", 0.01)
    async with watching(world) as stream:
        assert await stream.block() == [": alive"]


async def test_a_watcher_that_is_away_holds_up_nothing(tmp_path: Path) -> None:
    """An open stream does not hold up the gateway's end."""
    async with lcm_world(tmp_path) as world, watching(world) as stream:
        del stream


# --- the feed alone ---------------------------------------------------------------------------------------------------


def an_event(number: int) -> Envelope[PackageFetched]:
    return Envelope(PackageFetched(vnf_pkg_id=str(number)), source="/kubevnfm/test", id=f"event-{number}")


def everything(_: LoggedEvent) -> bool:
    return True


@pytest.fixture
async def feed(tmp_path: Path) -> AsyncIterator[EventFeed]:
    async with SqliteStore.open(tmp_path / "store.db") as store:
        yield EventFeed(EventLog(store, SystemClock()), SystemClock(), newest=10)


async def test_a_watcher_that_is_too_slow_is_cut_off(feed: EventFeed) -> None:
    async with aclosing(feed.follow(everything, after=None, silence_s=0.01)) as slow:
        assert isinstance(await anext(slow), Silence)
        await feed.add(an_event(0))
        first = await anext(slow)
        assert isinstance(first, LoggedEvent)
        assert first.id == "event-0"
        for number in range(1, 12):
            await feed.add(an_event(number))
        assert [received async for received in slow] == []


async def test_a_watcher_that_keeps_up_sees_each_event_once(feed: EventFeed) -> None:
    async with aclosing(feed.follow(everything, after=None, silence_s=0.01)) as watcher:
        assert isinstance(await anext(watcher), Silence)
        seen = []
        for number in range(30):
            await feed.add(an_event(number))
            received = await anext(watcher)
            assert isinstance(received, LoggedEvent)
            seen.append(received.id)
    assert seen == [f"event-{number}" for number in range(30)]


@pytest.mark.parametrize(
    "place", ["gone", "since/", "since/yesterday", "since/2026-11-27T12:00:00", "since/2020-01-01T00:00:00Z"]
)
async def test_an_unknown_last_event_is_reported_as_missed(feed: EventFeed, place: str) -> None:
    async with aclosing(feed.follow(everything, after=place, silence_s=0.01)) as watcher:
        assert isinstance(await anext(watcher), Missed)


async def test_a_place_of_one_gateway_leads_on_at_another(tmp_path: Path) -> None:
    """Events from long before a view are not sent after it, and no place grows too old while nothing happens."""
    clock = SetClock(datetime.now(UTC))
    async with SqliteStore.open(tmp_path / "store.db") as store:
        log = EventLog(store, clock)
        old, restarted = EventFeed(log, clock), EventFeed(log, clock)
        await old.add(an_event(0))
        assert old.position() == "event-0"
        clock.advance(600)
        await old.add(an_event(1))
        async with aclosing(old.follow(everything, after=restarted.position(), silence_s=0.01)) as watcher:
            first = await anext(watcher)
            assert isinstance(first, LoggedEvent)
            assert first.id == "event-1"
            assert isinstance(await anext(watcher), Silence)
        clock.advance(7200)
        async with aclosing(restarted.follow(everything, after=old.position(), silence_s=0.01)) as watcher:
            assert isinstance(await anext(watcher), Silence)


async def test_an_event_that_arrives_just_before_a_stop_is_logged_and_delays_nothing(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        instance_id = await world.create()
    async with SqliteStore.open(tmp_path / "store.db") as store:
        logged = [event for document in await store.find(COLLECTION, Query()) for event in document.body["events"]]
        (created,) = [event for event in logged if event["key"] == "lcm.instance.created"]
        assert created["subject"] == instance_id
        # A message whose handler the closing bus has to cancel stays in its outbox.
        assert await store.pending_outbox("vnf_instances") == []
