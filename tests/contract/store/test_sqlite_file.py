"""Tests of the SQLite adapter only: the file, its lock, its durability, the use of indexes, and its speed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_store.port import AlreadyExists, Outgoing, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Filter, Index, Op, Query, Sort, by
from kubevnfm_store.sqlite.catalogue import Catalogue, index_sql
from kubevnfm_store.sqlite.filters import Paths, Sql
from kubevnfm_store.sqlite.queries import counting, selects
from kubevnfm_store.sqlite.readers import Readers
from kubevnfm_store.sqlite.store import PENDING, SqliteStore
from kubevnfm_store.sqlite.writer import FileInUse, Writer

INDEXES = [
    Index(["vnfdId"]),
    Index(["createdAt"]),
    Index(["state", "createdAt"]),
    Index(["name"], unique=True),
    Index(["cluster/name"], sparse=True),
]
OF_ARRAYS = [Index(["vimIds"]), Index(["parts/name", "createdAt"]), Index(["createdAt"]), Index(["vnfdId"])]


def plans(path: Path, statements: Callable[[Paths], Iterable[Sql]]) -> list[str]:
    """Return the plan of each statement about the things in a file."""
    with closing(sqlite3.connect(path)) as connection:
        things = Catalogue(connection).published("things")
        assert things is not None
        return [
            "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {each.text}", each.params))
            for each in statements(things)
        ]


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
        await store.insert("things", "a", {"name": "a"})
        found = plans(file, lambda things: selects(things, query))
    assert len(found) == steps
    for text in found:
        assert "USING INDEX index_things_" in text
        if query.sort is not None or query.limit is not None:
            assert "TEMP B-TREE" not in text


async def test_counting_and_the_outbox_use_indexes(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", INDEXES)
        await store.insert("things", "a", {"name": "a"})
        [count, outbox] = plans(
            file, lambda things: [counting(things, by(vnfdId="x"), 10), Sql(PENDING, ("things", "things", 100))]
        )
        assert "index_things_" in count
        assert "SCAN" not in outbox
        assert outbox.count("INDEX outbox_pending") == 2


async def test_a_collection_without_documents_is_not_searched_until_it_has_some(tmp_path: Path) -> None:
    file, everything = tmp_path / "documents.db", Query()

    async def found(store: SqliteStore) -> list[str]:
        ids = [each.id for each in await store.find("things", everything)]
        assert await store.count("things", everything.filter, limit=9) == len(ids)
        return ids

    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", INDEXES)
        assert await found(store) == []
        assert await store.delete_many("things", everything.filter) == 0
        await store.insert("things", "a", {"name": "a"})
        assert await found(store) == ["a"]
        assert await store.delete("things", "a")
        assert await found(store) == []
        # In one transaction, of which some operations are refused after those that fill and empty the collection.
        results = await asyncio.gather(
            store.insert("things", "a", {"name": "a"}),
            store.insert("things", "b", {"name": "a"}),
            store.delete("things", "a"),
            store.update("things", "a", {"name": "x"}),
            store.insert("things", "c", {"name": "c"}),
            store.insert("things", "d", {"name": "c"}),
            return_exceptions=True,
        )
        assert [type(each) for each in results if isinstance(each, Exception)] == [
            AlreadyExists,
            RevisionConflict,
            AlreadyExists,
        ]
        assert await found(store) == ["c"]
    async with SqliteStore.open(file) as store:
        assert await found(store) == ["c"]
        assert await store.delete_many("things", by(name="c")) == 1
        assert await found(store) == []
    async with SqliteStore.open(file) as store:
        assert await found(store) == []
        await store.insert("things", "a", {"name": "a"})
        assert await found(store) == ["a"]
        await store.delete("things", "a")
        with closing(sqlite3.connect(file)) as other:
            other.execute("DROP TABLE documents_things")
        assert await found(store) == []


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (by(vimIds="v7"), ["t7"]),
        (by(vimIds="one"), ["single"]),
        (Compare("vimIds", Op.IN, ["v7", "v9", "one"]), ["single", "t7", "t9"]),
        (AllOf([Compare("vimIds", Op.IN, ["all", "x"]), by(state="x")]), ["t3"]),
        (AllOf([by(vimIds="all"), by(vnfdId="d3")]), ["t3", "t8"]),
        (AnyOf([by(vimIds="v1"), by(vnfdId="none")]), ["t1"]),
        (Compare("vimIds", Op.GTE, ["v8"]), ["t8", "t9"]),
        (Compare("vimIds", Op.CONT, ["9"]), ["t9"]),
        (Compare("parts/name", Op.EQ, ["p7"]), ["t7"]),
        (Compare("parts/name", Op.IN, ["p7", None]), ["single", "t7"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("page", [Query(), Query(limit=100), Query(after=(None, "a"), limit=100)], ids=str)
async def test_searches_over_arrays_do_not_read_the_collection(
    tmp_path: Path, wanted: Filter, ids: list[str], page: Query
) -> None:
    file, query = tmp_path / "documents.db", replace(page, filter=wanted)
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", OF_ARRAYS)
        await store.insert("things", "single", {"vimIds": "one", "parts": {"name": None}})
        for n in range(10):
            parts = [{"name": f"p{n}"}, {"name": "q"}]
            body = {"vimIds": ["all", f"v{n}"], "parts": parts, "vnfdId": f"d{n % 5}", "state": "x" if n == 3 else "y"}
            await store.insert("things", f"t{n}", body)
        assert [each.id for each in await store.find("things", query)] == ids
        assert await store.count("things", wanted, limit=100) == len(ids)
        found = plans(file, lambda things: [*selects(things, query), counting(things, wanted, 100)])
    for text in found:
        assert "SEARCH elements USING" in text
        assert "SCAN documents_things" not in text
        assert "SEARCH documents_things USING" in text


async def test_a_write_is_seen_at_once_by_those_who_follow_its_collection(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        things, others = store.writes_to("things"), store.writes_to("other_things")
        waiting = asyncio.create_task(things.following(look_s=0.0, longest_s=600.0))
        waits = asyncio.create_task(others.following(look_s=0.0, longest_s=600.0))
        await asyncio.sleep(0)
        with pytest.raises(RevisionConflict):
            await store.update("things", "a", {"n": 1})
        assert not waiting.done()  # nothing was written, and there is no look
        writing = asyncio.create_task(store.insert("things", "a", {"n": 1}))
        await asyncio.sleep(0)
        writing.cancel()  # it is written all the same
        async with asyncio.timeout(30):
            await waiting
        assert await store.get("things", "a") is not None
        assert not waits.done()
        waits.cancel()


async def test_no_write_copies_arrays_into_an_index(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"

    def indexed() -> list[str]:
        with closing(sqlite3.connect(file)) as connection:
            rows = connection.execute("SELECT sql FROM sqlite_schema WHERE name GLOB 'index_things_*'").fetchall()
        return [path for path in ("vimIds", "vnfdId") if any(f'"{path}"' in sql for (sql,) in rows)]

    for _ in range(2):
        async with SqliteStore.open(file) as store:
            await store.ensure_indexes("things", OF_ARRAYS)
            if await store.get("things", "a") is None:
                await store.insert("things", "a", {"vimIds": "v1"})
                assert indexed() == ["vimIds", "vnfdId"]
                await store.replace("things", "a", {"vimIds": ["v1", "v2"]}, if_revision=1)
            assert indexed() == ["vnfdId"]
            assert [each.id for each in await store.find("things", Query(by(vimIds="v2")))] == ["a"]
    with closing(sqlite3.connect(file)) as earlier:
        name, columns, _ = index_sql("things", Index(["vimIds"]))
        earlier.execute(f"CREATE INDEX {name} ON documents_things ({columns})")
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", OF_ARRAYS)
        assert indexed() == ["vnfdId"]


async def test_searches_over_arrays_follow_each_write(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"

    async def users(store: SqliteStore, vim_id: str) -> list[str]:
        return [each.id for each in await store.find("things", Query(by(vimIds=vim_id)))]

    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", OF_ARRAYS)
        for name in ("a", "b", "c"):
            await store.insert("things", name, {"vimIds": ["v1", "v2", "v1"]})
        await store.replace("things", "a", {"vimIds": ["v2", "v3"]}, if_revision=1)
        await store.update("things", "b", {"vimIds": "v3", "n": 1}, where=by(vimIds="v1"))
        with pytest.raises(RevisionConflict):
            await store.update("things", "b", {"vimIds": ["v9"]}, where=by(vimIds="v1"))
        with pytest.raises(AlreadyExists):
            await store.insert("things", "c", {"vimIds": ["v9"]})
        assert [await users(store, each) for each in ("v1", "v2", "v3", "v9")] == [["c"], ["a", "c"], ["a", "b"], []]
        await store.delete("things", "c")
        assert await store.delete_many("things", by(vimIds="v2")) == 1
        await store.update("things", "b", {}, unset=["vimIds"])
        await store.insert("things", "c", {})
        assert [await users(store, each) for each in ("v1", "v2", "v3")] == [[], [], []]
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("SELECT count(*) FROM elements").fetchone() == (0,)


EARLIER = """
CREATE TABLE IF NOT EXISTS indexed_paths (
    collection TEXT NOT NULL, path TEXT NOT NULL, has_arrays INTEGER NOT NULL, PRIMARY KEY (collection, path)
) WITHOUT ROWID;
INSERT INTO indexed_paths VALUES ('things', 'vimIds', 1), ('things', 'vnfdId', 0), ('things', 'parts/name', 0);
"""
"""A version without the table of elements makes this when it opens a file, and notes what it finds there."""


async def test_what_an_earlier_version_has_written_is_found(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"

    async def found(store: SqliteStore) -> list[list[str]]:
        searches: list[Filter] = [
            by(vimIds="v1"),
            by(vimIds="v2"),
            by(vnfdId="d1"),
            Compare("parts/name", Op.EQ, ["p1"]),
        ]
        return [[each.id for each in await store.find("things", Query(search))] for search in searches]

    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", OF_ARRAYS)
        await store.insert("things", "a", {"vimIds": ["v1", "v2"], "vnfdId": "d1", "parts": [{"name": "p1"}]})
        await store.insert("things", "b", {"vimIds": "v2"})
        assert await found(store) == [["a"], ["a", "b"], ["a"], ["a"]]
    with closing(sqlite3.connect(file)) as earlier:
        # It lacks the index on parts/name, so it does not say what is there.
        earlier.executescript(EARLIER + "DELETE FROM indexed_paths WHERE path = 'parts/name';")
        change = "UPDATE documents_things SET body = ? WHERE id = 'a'"
        earlier.execute(change, ('{"vimIds":["v2"],"vnfdId":"d1","parts":[{"name":"p2"}]}',))
        earlier.execute("INSERT INTO documents_things VALUES ('c', 1, ?)", ('{"vimIds":["v1"],"vnfdId":"d1"}',))
        earlier.execute("DELETE FROM documents_things WHERE id = 'b'")
        earlier.commit()
    for _ in range(2):
        async with SqliteStore.open(file) as store:
            assert await found(store) == [["c"], ["a"], ["a", "c"], []]
            await store.ensure_indexes("things", OF_ARRAYS)
            assert await found(store) == [["c"], ["a"], ["a", "c"], []]
    async with SqliteStore.open(file) as store:
        await store.delete("things", "c")
        assert await found(store) == [[], ["a"], ["a"], []]


async def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file) as store:
        await store.insert("things", "a", {"vimIds": ["v1", "v2"]})
        await store.insert("things", "b", {"vimIds": "v2"})
    with closing(sqlite3.connect(file)) as earlier:
        earlier.executescript("DROP TABLE elements; DROP TABLE searched_paths;" + EARLIER)
    async with SqliteStore.open(file) as store:
        await store.ensure_indexes("things", OF_ARRAYS)
        assert [each.id for each in await store.find("things", Query(by(vimIds="v2")))] == ["a", "b"]
        await store.delete("things", "a")
        assert [each.id for each in await store.find("things", Query(by(vimIds="v2")))] == ["b"]


async def test_after_a_full_disk_searches_find_what_is_on_it(tmp_path: Path) -> None:
    """SQLite rolls such a transaction back by itself: what the store knows of the file must go back, too."""
    file = tmp_path / "documents.db"
    writer = Writer(file)
    readers = Readers(file)
    store = SqliteStore(writer, readers)

    async def limit_pages(most: int) -> None:
        await writer.do(lambda connection: connection.execute(f"PRAGMA max_page_count = {most}").fetchone())

    try:
        await store.ensure_indexes("things", OF_ARRAYS)
        await store.insert("things", "a", {"vimIds": "v1"})
        await limit_pages(1)  # as many as there are
        with pytest.raises(StoreUnavailable, match="full"):
            await store.insert("things", "b", {"vimIds": ["v1"], "text": "x" * 100_000})
        assert (await store.is_ready(), store.takes_writes) == (True, False)
        await limit_pages(2**30)
        await store.insert("things", "c", {"vimIds": "v1"})
        assert store.takes_writes
        assert [each.id for each in await store.find("things", Query(by(vimIds="v1")))] == ["a", "c"]
    finally:
        await readers.close()
        await writer.close()


async def test_a_write_that_may_wait_goes_with_the_next_one_or_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "documents.db"
    async with SqliteStore.open(file) as store:
        first = asyncio.create_task(store.insert("things", "a", {"n": 1}, may_wait=True))
        await asyncio.sleep(0)
        await store.insert("things", "b", {"n": 2})
        assert await store.get("things", "a") is not None  # it was written before
        await first
        async with asyncio.timeout(30):
            await store.insert("things", "c", {"n": 3}, may_wait=True)  # no other follows
        with pytest.raises(AlreadyExists):
            await store.insert("things", "a", {"n": 1}, may_wait=True)
        last = asyncio.create_task(store.insert("things", "d", {"n": 4}, may_wait=True))
        await asyncio.sleep(0)
    await last
    async with SqliteStore.open(file) as store:
        assert [each.id for each in await store.find("things", Query(sort=Sort("n")))] == ["a", "b", "c", "d"]


async def test_a_long_read_does_not_hold_the_loop(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        await asyncio.gather(*(store.insert("things", f"{n:05}", {"n": n}) for n in range(3000)))
        for _ in range(3):
            reading = asyncio.create_task(store.find("things", Query()))
            await asyncio.sleep(0)
            assert not reading.done()  # given up in the loop, so that others have their turn
            assert len(await reading) == 3000


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
from kubevnfm_store.sqlite.store import SqliteStore

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
