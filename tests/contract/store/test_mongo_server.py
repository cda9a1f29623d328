"""Tests of the MongoDB adapter only: outages, and several processes that write the same documents."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time

import pytest
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import AlreadyExists, Outgoing, RevisionConflict, StoreUnavailable, UnsupportedServer
from kubevnfm_store.query import Query, by
from patience import until_true
from servers.mongodb import MongoServer
from servers.ports import free_port
from structlog.testing import capture_logs

pytestmark = pytest.mark.server


async def test_an_unreachable_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"mongodb://user:hunter2@127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=200"
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        async with MongoStore.connect(url, "test"):
            pass
    assert "hunter2" not in str(caught.value)


async def test_ferretdb_1_is_refused_because_its_writes_are_not_atomic(old_ferretdb: MongoServer) -> None:
    with pytest.raises(UnsupportedServer, match=re.escape("FerretDB v1.24.2")):
        async with MongoStore.connect(old_ferretdb.url, "test"):
            pass


@pytest.mark.parametrize("old_ferretdb", ["v2.5.0"], indirect=True)
async def test_ferretdb_2_is_another_engine(old_ferretdb: MongoServer) -> None:
    async with MongoStore.connect(old_ferretdb.url, "test") as store:
        assert await store.is_ready()


async def test_an_outage_is_reported_and_survived(own_mongodb: MongoServer) -> None:
    async with MongoStore.connect(f"{own_mongodb.url}?serverSelectionTimeoutMS=300", "test") as store:
        await store.insert("things", "a", {"n": 1})
        await asyncio.to_thread(own_mongodb.stop, kill=True)
        assert not await store.is_ready()
        with pytest.raises(StoreUnavailable):
            await store.get("things", "a")
        with pytest.raises(StoreUnavailable):
            await store.update("things", "a", {"n": 2})
        with capture_logs() as lines:
            await asyncio.to_thread(own_mongodb.start)
            # The client looks for the server twice a second, which may be longer than the 300 ms.
            await until_true(store.is_ready)
            assert [(line["event"], line["failed_tries"]) for line in lines] == [("outage_ended", 2)]
        assert (await store.update("things", "a", {"n": 3})).revision == 2


async def test_a_short_outage_is_not_noticed(own_mongodb: MongoServer) -> None:
    # The server of the tests takes seconds to start again on a busy machine; users choose that time in the URL too.
    async with MongoStore.connect(f"{own_mongodb.url}?serverSelectionTimeoutMS=300000", "test") as store:
        await store.insert("things", "a", {"n": 0})
        await asyncio.to_thread(own_mongodb.stop, kill=True)
        writing = asyncio.create_task(store.update("things", "a", {"n": 1}, if_revision=1, outbox=[Outgoing("m", {})]))
        await asyncio.to_thread(own_mongodb.start)
        assert (await writing).revision == 2
        assert [len(each.messages) for each in await store.pending_outbox("things")] == [1]


WRITING = """
import asyncio, sys
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import Outgoing

async def main():
    async with MongoStore.connect(sys.argv[1], "test") as store:
        async def write(n):
            await store.insert("things", f"t{n:06}", {"n": n}, outbox=[Outgoing(f"m{n}", {})])
            await store.update("things", f"t{n:06}", {"seen": True})
            print(n, flush=True)
        for start in range(0, 100000, 20):
            await asyncio.gather(*(write(n) for n in range(start, start + 20)))

asyncio.run(main())
"""


async def test_the_stand_in_keeps_what_it_acknowledged_when_it_is_killed(own_mongodb: MongoServer) -> None:
    """The tests that kill processes rely on it. Its file, which grows with each write, is compacted at its next start."""
    assert own_mongodb.file is not None
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITING, own_mongodb.url, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    acknowledged = [int(await writer.stdout.readline()) for _ in range(200)]
    await asyncio.to_thread(own_mongodb.stop, kill=True)
    writer.kill()
    acknowledged += [int(line) for line in (await writer.stdout.read()).split(b"\n")[:-1]]
    await writer.wait()
    grown = own_mongodb.file.stat().st_size
    await asyncio.to_thread(own_mongodb.start)
    assert own_mongodb.file.stat().st_size < grown / 2
    async with MongoStore.connect(own_mongodb.url, "test") as store:
        updated = {each.body["n"] for each in await store.find("things", Query(by(seen=True)))}
        stored = {each.id for each in await store.find("things", Query())}
        posted = {each.id for each in await store.pending_outbox("things", limit=100_000)}
    assert set(acknowledged) <= updated
    assert posted == stored


async def test_writers_of_several_processes_win_each_revision_once(mongodb_url: str) -> None:
    database = f"test_{time.time_ns()}"
    async with MongoStore.connect(mongodb_url, database) as one, MongoStore.connect(mongodb_url, database) as other:
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


async def test_an_insert_repeated_after_a_lost_answer_knows_itself(mongo_store: MongoStore) -> None:
    """Two inserts with the same id differ even if their content is equal: only a repeated call finds its own document."""
    await mongo_store.insert("things", "a", {"n": 1})
    with pytest.raises(AlreadyExists, match=re.escape("things/a")):
        await mongo_store.insert("things", "a", {"n": 1})
    assert len(await mongo_store.find("things", Query())) == 1
