"""Tests of the MongoDB adapter only: outages, and several processes that write the same documents."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_store.mongo import MongoStore
from kubevnfm_store.mongo.guard import DEAD_AFTER_S, LockDocuments
from kubevnfm_store.port import AlreadyExists, Outgoing, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Query, by
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import monitoring
from servers.ferretdb import FerretServer
from servers.ports import free_port

pytestmark = pytest.mark.server


async def test_an_unreachable_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"mongodb://user:hunter2@127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=200"
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        async with MongoStore.connect(url, "test"):
            pass
    assert "hunter2" not in str(caught.value)


async def test_an_outage_is_reported_and_survived(ferretdb: FerretServer, tmp_path: Path) -> None:
    server = FerretServer(ferretdb.program, tmp_path)
    server.start()
    try:
        async with MongoStore.connect(f"{server.url}?serverSelectionTimeoutMS=300", "test") as store:
            await store.insert("things", "a", {"n": 1})
            await asyncio.to_thread(server.stop, kill=True)
            assert not await store.is_ready()
            with pytest.raises(StoreUnavailable):
                await store.get("things", "a")
            with pytest.raises(StoreUnavailable):
                await store.update("things", "a", {"n": 2})
            await asyncio.to_thread(server.start)
            assert (await store.update("things", "a", {"n": 3})).revision == 2
            assert await store.is_ready()
    finally:
        await asyncio.to_thread(server.stop)


async def test_a_short_outage_is_not_noticed(ferretdb: FerretServer, tmp_path: Path) -> None:
    server = FerretServer(ferretdb.program, tmp_path)
    server.start()
    try:
        async with MongoStore.connect(server.url, "test") as store:
            await store.insert("things", "a", {"n": 0})
            await asyncio.to_thread(server.stop, kill=True)
            writing = asyncio.create_task(
                store.update("things", "a", {"n": 1}, if_revision=1, outbox=[Outgoing("m", {})])
            )
            await asyncio.to_thread(server.start)
            assert (await writing).revision == 2
            assert [len(each.messages) for each in await store.pending_outbox("things")] == [1]
    finally:
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("server", ["ferretdb_url", "memory_mongo_url"])
async def test_writers_of_several_processes_win_each_revision_once(server: str, request: pytest.FixtureRequest) -> None:
    url, database = request.getfixturevalue(server), f"test_{time.time_ns()}"
    async with MongoStore.connect(url, database) as one, MongoStore.connect(url, database) as other:
        await one.insert("things", "a", {"state": "free", "n": 0})

        async def claim(store: MongoStore, name: str) -> str | None:
            try:
                await store.update("things", "a", {"state": "taken", "by": name}, where=by(state="free"))
            except RevisionConflict:
                return None
            return name

        async def add(store: MongoStore, rounds: int) -> None:
            while rounds:
                now = await store.get("things", "a")
                assert now is not None
                try:
                    await store.replace(
                        "things", "a", dict(now.body) | {"n": now.body["n"] + 1}, if_revision=now.revision
                    )
                except RevisionConflict:
                    continue
                rounds -= 1

        claims = await asyncio.gather(*(claim(store, f"{n}") for n in range(10) for store in (one, other)))
        assert len([name for name in claims if name]) == 1
        await asyncio.gather(*(add(store, 5) for store in (one, other, one, other)))
        now = await one.get("things", "a")
        assert now is not None
        assert now.body["n"] == 20


@pytest.fixture
async def locks(ferretdb_url: str) -> AsyncIterator[Any]:
    client: AsyncIOMotorClient[dict[str, object]] = AsyncIOMotorClient(ferretdb_url)
    yield client[f"test_{time.time_ns()}"]["locks"]
    client.close()


async def test_the_lock_of_a_dead_writer_is_taken_over_by_one_writer_at_a_time(locks: Any) -> None:
    await locks.insert_one({"_id": "things/a", "token": "dead"})
    guards = [LockDocuments(locks) for _ in range(4)]
    inside = most = 0

    async def write() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1

    async with asyncio.timeout(300):
        await asyncio.gather(*(guard.alone("things", "a", write) for guard in guards))
    assert most == 1


async def test_no_lock_is_taken_over_because_the_server_stood_still(locks: Any, ferretdb: FerretServer) -> None:
    """The holder's write is in the server as long as the others wait for it."""
    one, other = LockDocuments(locks), LockDocuments(locks)
    has_begun, stands_still, order = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow() -> None:
        has_begun.set()
        await stands_still.wait()
        await several_calls(locks, 50)
        order.append("first")

    async def next_one() -> None:
        order.append("second")

    first = asyncio.create_task(one.alone("things", "a", slow))
    await has_begun.wait()
    second = asyncio.create_task(other.alone("things", "a", next_one))
    await several_calls(locks, 10)  # by then the second has seen the lock
    (pid,) = ferretdb.pids
    os.kill(pid, signal.SIGSTOP)
    try:
        stands_still.set()
        await asyncio.sleep(DEAD_AFTER_S + 0.5)
    finally:
        os.kill(pid, signal.SIGCONT)
    async with asyncio.timeout(300):
        await asyncio.gather(first, second)
    assert order == ["first", "second"]


async def several_calls(locks: Any, count: int) -> None:
    for _ in range(count):
        await locks.find_one({"_id": "anything"})


async def test_the_write_of_a_cancelled_caller_keeps_its_lock(locks: Any) -> None:
    """The server may still carry it out."""
    one, other = LockDocuments(locks), LockDocuments(locks)
    has_begun, may_end, order = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow() -> None:
        has_begun.set()
        await may_end.wait()
        order.append("first")

    async def next_one() -> None:
        order.append("second")

    first = asyncio.create_task(one.alone("things", "a", slow))
    await has_begun.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(other.alone("things", "a", next_one))
    await several_calls(locks, 10)  # by then the second would have a free lock
    assert order == []
    may_end.set()
    async with asyncio.timeout(300):
        await second
    assert order == ["first", "second"]


async def test_documents_are_locked_together_except_those_that_another_writer_holds(locks: Any) -> None:
    one, other = LockDocuments(locks), LockDocuments(locks)

    async def beside() -> None:
        async with other.free("things", ["a", "b", "c"]) as held:
            assert held == ["a", "c"]
            async with one.free("things", ["a", "b", "c", "d"]) as rest:
                assert rest == ["d"]

    async with asyncio.timeout(300):
        await one.alone("things", "b", beside)
    assert await locks.count_documents({}) == 0


@pytest.mark.parametrize(("server", "conditions"), [("ferretdb_url", False), ("memory_mongo_url", True)])
async def test_each_server_gets_its_own_form_of_a_write(
    server: str, conditions: bool, request: pytest.FixtureRequest
) -> None:
    """FerretDB finds a document by its id only, so the conditions are checked in memory, below a lock."""
    listener = Writes()
    url, database = request.getfixturevalue(server), f"test_{time.time_ns()}"
    async with MongoStore.connect(url, database, listeners=[listener]) as store:
        await store.insert("things", "a", {"n": 1})
        await store.update("things", "a", {"n": 2}, if_revision=1, where=by(n=1))
    sent = "body.n" in str(listener.queries["things"]) and "revision" in str(listener.queries["things"])
    assert sent is conditions
    assert ("locks" in listener.collections) is not conditions


class Writes(monitoring.CommandListener):
    """The collections that commands are about, and the queries of writes by collection."""

    def __init__(self) -> None:
        self.collections: set[str] = set()
        self.queries: dict[str, object] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        collection = event.command.get(event.command_name)
        if isinstance(collection, str):
            self.collections.add(collection)
            if event.command_name == "findAndModify":
                self.queries[collection] = event.command["query"]

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Nothing: it was noted when it was sent."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Nothing: it was noted when it was sent."""


async def test_an_insert_repeated_after_a_lost_answer_knows_itself(mongo_store: MongoStore) -> None:
    """Two inserts with the same id differ even if their content is equal: only a repeated call finds its own document."""
    await mongo_store.insert("things", "a", {"n": 1})
    with pytest.raises(AlreadyExists, match=re.escape("things/a")):
        await mongo_store.insert("things", "a", {"n": 1})
    assert len(await mongo_store.find("things", Query())) == 1
