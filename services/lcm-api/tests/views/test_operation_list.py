"""Our own list of operations: its order, filters and pages, and what a page costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from kubevnfm_store.query import Query, Stored
from worlds.event_stream import watching
from worlds.lcm_world import World, lcm_world

LIST = "/kubevnfm/v1/operations"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        await running.sample()
        yield running


async def page(world: World, query: str = "") -> Any:
    return (await world.call("GET", f"{LIST}?{query}")).must(200).json


async def listed(world: World, query: str = "") -> list[str]:
    """Return the ids of all pages."""
    shown = await page(world, query)
    found = [each["id"] for each in shown["items"]]
    while "next" in shown:
        shown = (await world.call("GET", shown["next"].removeprefix(world.url))).must(200).json
        found += [each["id"] for each in shown["items"]]
    return found


async def test_open_operations_come_first_and_in_each_group_the_newest(world: World) -> None:
    states = ("COMPLETED", "FAILED_TEMP", "ROLLED_BACK", "FAILED", "COMPLETED", "PROCESSING")
    by_age = [(await world.an_operation_in(state), state) for state in states]
    newest = list(reversed(by_age))
    opened = [one for one, state in newest if state in {"PROCESSING", "FAILED_TEMP"}]
    ended = [one for one, state in newest if one not in opened]
    shown = await page(world)
    assert [each["id"] for each in shown["items"]] == [*opened, *ended]
    assert "next" not in shown
    for limit in (1, 2, 3, 4, 5):
        assert await listed(world, f"limit={limit}") == [*opened, *ended]
    running, failed = shown["items"][:2]
    assert (running["state"], running["steps"]["current"]) == ("PROCESSING", ["Create the virtual resources"])
    assert running["steps"]["total"] > running["steps"]["done"] >= 0
    assert [each["task"] for each in running["next"]] == ["wait", "cancel"]
    assert failed["cause"]["step"] == "create_resources"
    assert failed["next"][0]["task"] == "retry"
    assert "endTime" not in failed
    for each in shown["items"][2:]:
        assert each["endTime"] == each["stateEnteredTime"]
        assert {"cause", "next", "estimate"}.isdisjoint(each)
    assert shown["items"][2]["steps"]["done"] == shown["items"][2]["steps"]["total"]

    await _filters(world, dict(by_age), [*opened, *ended])
    await _stream(world, shown)
    # As a clean-up, which no one has asked for.
    await world.store.update("vnf_lcm_op_occs", failed["id"], {"internal/isInternal": True})
    for query in ("", "state=open", f"id={failed['id']}", f"vnfInstanceId={failed['vnfInstanceId']}"):
        assert failed["id"] not in await listed(world, query), query


async def test_what_ends_between_two_queries_of_a_page_is_listed_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open operations and those that have ended are read one after the other."""
    older, ending = [await world.an_operation_in(state) for state in ("COMPLETED", "PROCESSING")]
    find = world.store.find

    async def end_meanwhile(collection: str, query: Query) -> Sequence[Stored]:
        found = await find(collection, query)
        if collection == "vnf_lcm_op_occs" and ending in {each.id for each in found}:
            await world.store.update(collection, ending, {"operationState": "COMPLETED"})
        return found

    monkeypatch.setattr(world.store, "find", end_meanwhile)
    assert await listed(world) == [ending, older]
    assert [each["state"] for each in (await page(world))["items"]] == ["COMPLETED"] * 2


async def _filters(world: World, states: dict[str, str], every: list[str]) -> None:
    def in_states(*wanted: str) -> list[str]:
        return [each for each in every if states[each] in wanted]

    assert await listed(world, "state=open&limit=1") == in_states("PROCESSING", "FAILED_TEMP")
    assert await listed(world, "state=ended&limit=2") == in_states("COMPLETED", "ROLLED_BACK", "FAILED")
    assert await listed(world, "state=FAILED,ROLLED_BACK&state=PROCESSING") == in_states(
        "PROCESSING", "FAILED", "ROLLED_BACK"
    )
    assert await listed(world, "state=open&state=COMPLETED") == in_states("PROCESSING", "FAILED_TEMP", "COMPLETED")
    assert await listed(world, "operation=INSTANTIATE&limit=2") == every
    assert await listed(world, "operation=HEAL") == []
    items = {each["id"]: each for each in (await page(world))["items"]}
    for one in (every[0], every[-1]):
        mine = f"vnfInstanceId={items[one]['vnfInstanceId']}"
        assert await listed(world, mine) == [one]
        assert await listed(world, f"id={one}") == await listed(world, f"id=none,{one}&state={states[one]}") == [one]
        assert await listed(world, f"{mine}&operation=INSTANTIATE&state={states[one]}") == [one]
        assert await listed(world, f"{mine}&operation=SCALE") == []
        assert await listed(world, f"{mine}&state=ROLLING_BACK") == []
    since = items[every[1]]["startTime"]
    assert set(await listed(world, f"since={since}")) == {each for each in every if items[each]["startTime"] >= since}
    assert await listed(world, f"since={quote(since.replace('Z', '+00:00'))}&state=open") == every[:2]
    assert await listed(world, "since=9999-12-31T23:59:59Z") == []


async def _stream(world: World, shown: Any) -> None:
    """Check that the stream goes on from the place of the list."""
    instance_id = shown["items"][0]["vnfInstanceId"]
    await world.twins.release()
    async with watching(world, after=shown["sequence"], type="lcm.operation.changed") as stream:
        changed = (await stream.event())["data"]["data"]
    assert (changed["vnf_instance_id"], changed["state"]) == (instance_id, "COMPLETED")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("state=LOST", "state"),
        ("state=", "state"),
        ("state=open,", "state"),
        ("operation=INSTANTIATE&operation=HEAL", "operation"),
        ("operation=instantiate", "operation"),
        ("since=yesterday", "since"),
        ("since=2026-11-27T10:00:00", "since"),
        ("since=0001-01-01T00:00:00%2B23:00", "since"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=%C2%B2", "limit"),
        ("limit=" + "9" * 4000, "limit"),
        ("nextpage_opaque_marker=x", "nextpage_opaque_marker"),
        ("vnfInstance=x", "vnfInstance"),
    ],
)
async def test_what_a_list_cannot_be_asked_is_refused_by_name(shared_world: World, query: str, name: str) -> None:
    problem = (await shared_world.call("GET", f"{LIST}?{query}")).problem(400)
    assert name in problem["detail"]


async def test_a_marker_serves_its_own_list_and_filters_alone(world: World) -> None:
    for _ in range(3):
        await world.an_operation_in("COMPLETED")
    marker = (await page(world, "limit=1&state=ended"))["next"].partition("?")[2]
    assert len((await page(world, marker))["items"]) == 1, "the limit of the first page"
    assert len((await page(world, f"{marker}&limit=2"))["items"]) == 2
    assert len((await page(world, f"{marker}&state=ended"))["items"]) == 1
    (await world.call("GET", f"{LIST}?{marker}&state=open")).problem(400)
    foreign = (await world.lcm("GET", "/vnf_lcm_op_occs")).headers["Link"]
    (await world.call("GET", f"{LIST}?{foreign.partition('?')[2].partition('>')[0]}")).problem(400)


async def test_a_page_costs_what_it_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database hands out a page of each state, and one read has the tasks of all operations that are open."""
    for _ in range(5):
        await world.an_operation_in("COMPLETED")
    for _ in range(4):
        await world.an_operation_in("FAILED_TEMP")
    read: list[tuple[str, int]] = []
    find, get, get_many = world.store.find, world.store.get, world.store.get_many

    async def counted(collection: str, query: Query) -> Sequence[Stored]:
        found = await find(collection, query)
        read.append((collection, len(found)))
        for each in found if collection == "vnf_lcm_op_occs" else ():
            assert "draft" not in each.body["internal"]
        return found

    def never(*_: Any) -> Any:
        raise AssertionError("no document is read by itself")

    monkeypatch.setattr(world.store, "find", counted)
    monkeypatch.setattr(world.store, "get", never)
    monkeypatch.setattr(world.store, "get_many", never)
    shown = await page(world, "limit=3")
    monkeypatch.setattr(world.store, "get", get)
    monkeypatch.setattr(world.store, "get_many", get_many)
    assert {each["state"] for each in shown["items"]} == {"FAILED_TEMP"}
    operations = [count for collection, count in read if collection == "vnf_lcm_op_occs"]
    # Four states; then the last runs of the one plan.
    assert (sorted(operations[:4]), operations[4:]) == ([0, 0, 0, 4], [5])
    # A task of its own reads alarms and subscriptions meanwhile, and no request does.
    others = [name for name, _ in read if name not in {"vnf_lcm_op_occs", "alarms", "subscriptions"}]
    assert others == ["operation_progress"]
