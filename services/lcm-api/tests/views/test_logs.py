"""The log of an operation: its filters, and those who follow it until the operation rests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from kubevnfm_access.errors import TooManyRequests
from kubevnfm_lcm_api.http.permission import Permission
from kubevnfm_lcm_api.views import logs
from kubevnfm_lcm_api.views.followers import Followers
from worlds.lcm_world import World, lcm_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        await running.sample()
        yield running


async def test_a_log_is_read_by_node_and_task(world: World) -> None:
    operation_id = await world.an_operation_in("COMPLETED")
    path = f"/kubevnfm/v1/operations/{operation_id}/log"
    for query, text in (
        ("", "on None in None"),
        ("?node=worker1", "on worker1 in None"),
        ("?task=join&node=a%2Fb%0Ac&follow=false", "on a/b\nc in join"),
        ("?task=join&follow=true", "on None in join"),  # it has ended
        ("?follow", "on None in None"),
    ):
        answer = (await world.call("GET", f"{path}{query}", headers={"Accept": "*/*"})).must(200)
        assert answer.raw.decode() == f"{operation_id} {text}\n"
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert world.logs.asked == []
    for query in ("follow=yes", "follow=true&follow=true", "lines=3", f"node={'n' * 254}", f"task={'%C3%A4' * 2000}"):
        (await world.call("GET", f"{path}?{query}")).problem(400)
    (await world.call("GET", f"{path}?node={'n' * 1_000_000}")).problem(414)
    (await world.call("GET", "/kubevnfm/v1/operations/other/log?follow=true")).problem(404)


async def test_a_log_is_followed_until_its_operation_rests(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_HEARTBEAT_S", 0.05)
    monkeypatch.setattr(logs, "_PAUSE_S", 0.01)
    operation_id = await world.an_operation_in("PROCESSING")
    world.logs.add(b"before\n")
    path = f"{world.url}/kubevnfm/v1/operations/{operation_id}/log?follow&node=worker1&task=join"
    async with asyncio.timeout(300), world.session.get(path) as response:
        assert response.status == 200
        assert await response.content.readline() == b"before\n"
        assert await response.content.readline() == b"\n", "so that proxies see that it goes on"
        # A restart of mgmt-executor is no end.
        world.logs.is_away = True
        await world.logs.is_asked(len(world.logs.asked) + 2)
        world.logs.add(b"while it was away\n")
        world.logs.is_away = False
        rest = response.content
        assert [line async for line in _lines(rest, 1)] == [b"while it was away\n"]
        world.logs.add(b"the last\n")
        await world.twins.release()
        assert (await rest.read()).strip() == b"the last"
    assert set(world.logs.asked) == {(operation_id, "worker1", "join")}


async def _lines(content: aiohttp.StreamReader, count: int) -> AsyncIterator[bytes]:
    """Yield so many lines that are not heartbeats."""
    while count:
        line = await content.readline()
        if line != b"\n":
            count -= 1
            yield line


async def test_a_log_breaks_off_when_the_permission_to_read_it_has_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-140: no answer goes on for longer than the credentials; the end is broken, as the rest is missing."""
    admitted = iter((True, False))

    async def lasts(_: Permission) -> bool:
        return next(admitted)

    monkeypatch.setattr(logs, "_HEARTBEAT_S", 0.05)
    monkeypatch.setattr(Permission, "lasts", lasts)
    operation_id = await world.an_operation_in("PROCESSING")
    world.logs.add(b"before\n")
    path = f"{world.url}/kubevnfm/v1/operations/{operation_id}/log?follow"
    async with asyncio.timeout(300), world.session.get(path) as response:
        assert await response.content.readline() == b"before\n"
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_a_log_that_cannot_be_read_is_an_error_before_its_beginning(world: World) -> None:
    operation_id = await world.an_operation_in("PROCESSING")
    world.logs.is_away = True
    for query in ("", "?follow=true"):
        (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}/log{query}")).problem(503)


async def test_the_gateway_does_not_wait_for_those_who_follow(tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        async with lcm_world(tmp_path) as world:
            await world.sample()
            operation_id = await world.an_operation_in("PROCESSING")
            response = await session.get(f"{world.url}/kubevnfm/v1/operations/{operation_id}/log?follow=true")
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < logs._HEARTBEAT_S
        with pytest.raises(aiohttp.ClientError):
            await response.read()


def test_so_many_follow_and_no_more() -> None:
    followers = Followers(1)
    with followers.place_for_one(), pytest.raises(TooManyRequests), followers.place_for_one():
        pass
    with followers.place_for_one():
        pass
