"""Tests of the SQLite adapter only: the file, its lock, its durability, the use of indexes, and its speed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_store.port import Outgoing, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Exists, Index, Op, Query, Sort, by
from kubevnfm_store.sqlite import FileInUse, SqliteStore
from kubevnfm_store.sqlite.filters import Sql
from kubevnfm_store.sqlite.queries import counting, selects
from kubevnfm_store.sqlite.store import PENDING
from kubevnfm_store.sqlite.writer import Writer

INDEXES = [
    Index(["vnfdId"]),
    Index(["createdAt"]),
    Index(["state", "createdAt"]),
    Index(["name"], unique=True),
    Index(["cluster/name"], sparse=True),
]
INDEXED = frozenset(path for index in INDEXES for path in index.fields)


def plan(path: Path, statement: Sql) -> str:
    connection = sqlite3.connect(path)
    try:
        return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", statement.params))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        (Query(by(vnfdId="x")), 1),
        (Query(Compare("vnfdId", Op.IN, ["x", "y"])), 1),
        (Query(by(name="x")), 1),
        (Query(sort=Sort("createdAt"), limit=100), 1),
        (Query(sort=Sort("createdAt", descending=True), limit=100), 1),
        (Query(sort=Sort("createdAt"), after=("2025", "a"), limit=100), 1),
        (Query(sort=Sort("createdAt"), after=(None, "a"), limit=100), 2),
        (Query(sort=Sort("createdAt", descending=True), after=("2025", "a"), limit=100), 2),
        (Query(by(state="FAILED"), sort=Sort("createdAt"), after=("2025", "a"), limit=100), 1),
        (Query(Compare("createdAt", Op.LT, ["2025"])), 1),
        (Query(AllOf([Exists("cluster/name"), by(kind="x")]), limit=100), 1),
        (Query(AllOf([Exists("cluster/name"), Exists("operation", exists=False)]), after=(None, "a"), limit=100), 1),
    ],
    ids=str,
)
async def test_queries_on_indexed_paths_use_their_index(tmp_path: Path, query: Query, steps: int) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", INDEXES)
        plans = [plan(file, statement) for statement in selects("things", query, INDEXED)]
    assert len(plans) == steps
    for text in plans:
        assert "USING INDEX index_things_" in text
        if query.sort is not None or query.limit is not None:
            assert "TEMP B-TREE" not in text


async def test_counting_and_the_outbox_use_indexes(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", INDEXES)
        assert "index_things_" in plan(file, counting("things", by(vnfdId="x"), INDEXED, 10))
        outbox = plan(file, Sql(PENDING, ("things", "things", 100)))
        assert "SCAN" not in outbox
        assert outbox.count("INDEX outbox_pending") == 2


async def test_a_reopened_file_holds_everything(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", INDEXES)
        await store.insert("things", "a", {"name": "x", "vnfdId": ["1", "2"]}, outbox=[Outgoing("m1", {"k": 1})])
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", INDEXES)
        assert len(await store.find("things", Query(by(vnfdId="2")))) == 1
        assert [each.id for each in await store.pending_outbox("things")] == ["a"]
        assert (await store.update("things", "a", {"n": 1})).revision == 2


async def test_one_store_at_a_time_has_the_file(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file):
        with pytest.raises(FileInUse, match="another process"):
            async with SqliteStore.open(file):
                pass
    async with SqliteStore.open(file) as store:
        assert await store.is_ready()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        pass
    assert not await store.is_ready()
    with pytest.raises(StoreUnavailable):
        await store.insert("things", "a", {})


async def test_a_store_that_is_closing_refuses_what_would_never_be_answered(tmp_path: Path) -> None:
    writer, hold = Writer(tmp_path / "documents.db"), threading.Event()
    held = asyncio.ensure_future(writer.do(lambda _: hold.wait()))
    closing = asyncio.ensure_future(writer.close())
    try:
        await asyncio.sleep(0)  # both have begun
        assert writer.is_running
        late = writer.do(lambda _: None)
        with pytest.raises(StoreUnavailable, match="the store is closed"):
            late.send(None)
    finally:
        hold.set()
        await closing
    assert await held


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    file.write_text("not a database, but long enough to be parsed" * 50)
    with pytest.raises(StoreUnavailable, match="not a database"):
        async with SqliteStore.open(file):
            pass


async def test_names_that_are_no_collection_and_bodies_that_are_no_json_are_refused(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        with pytest.raises(InvalidInput):
            await store.insert('x" (id); DROP TABLE y', "a", {})
        for body in ({"x": float("nan")}, {"x": object()}, {"x": "\ud800"}):
            with pytest.raises(InvalidInput):
                await store.insert("things", "a", body)
        assert await store.find("things", Query()) == []


WRITING = """
import asyncio, sys
from pathlib import Path
from kubevnfm_store.port import Outgoing
from kubevnfm_store.sqlite import SqliteStore

async def main():
    async with SqliteStore.open(Path(sys.argv[1])) as store:
        async def insert(n):
            await store.insert("things", f"t{n:06}", {"n": n}, outbox=[Outgoing(f"m{n}", {})])
            print(n, flush=True)
        for start in range(0, 100000, 50):
            await asyncio.gather(*(insert(n) for n in range(start, start + 50)))

asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITING, str(file), stdout=subprocess.PIPE)
    assert process.stdout is not None
    acknowledged = [int(await process.stdout.readline()) for _ in range(300)]
    process.kill()
    acknowledged += [int(line) for line in (await process.stdout.read()).split(b"\n")[:-1]]
    await process.wait()
    async with SqliteStore.open(file) as store:
        stored = {each.body["n"] for each in await store.find("things", Query())}
        posted = {each.id for each in await store.pending_outbox("things", limit=100_000)}
    assert set(acknowledged) <= stored
    assert posted == {f"t{n:06}" for n in stored}
