"""Searches on indexed paths have their index on MongoDB: the commands of the adapter fit the indexes that it declares."""

from __future__ import annotations

import time

import pytest
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Index, Op, Query, Sort, by
from servers.mongo_indexes import IndexUse

pytestmark = pytest.mark.server

INDEXES = [
    Index(["vnfdId"]),
    Index(["createdAt"]),
    Index(["state", "createdAt"]),
    Index(["name"], unique=True),
    Index(["cluster/name"], sparse=True),
]


@pytest.mark.parametrize(
    "query",
    [
        Query(by(vnfdId="x")),
        Query(by(vnfdId="x"), limit=1),
        Query(by(vnfdId="x", name="y")),
        Query(Compare("vnfdId", Op.IN, ["x", "y"]), limit=100),
        Query(AnyOf([by(vnfdId="x"), by(state="FAILED")])),
        Query(AllOf([by(name="x"), Exists("name")])),
        Query(sort=Sort("createdAt"), limit=100),
        Query(sort=Sort("createdAt", descending=True), limit=100),
        Query(sort=Sort("createdAt"), after=("2025", "a"), limit=100),
        Query(sort=Sort("createdAt"), after=(None, "a"), limit=100),
        Query(sort=Sort("createdAt", descending=True), after=("2025", "a"), limit=100),
        Query(by(state="FAILED"), sort=Sort("createdAt"), after=("2025", "a"), limit=100),
        Query(Compare("createdAt", Op.LT, ["2025"])),
        Query(AllOf([Exists("cluster/name"), by(kind="x")])),
        Query(AllOf([Exists("cluster/name"), Compare("cluster/name", Op.EQ, ["x"])]), limit=100),
        Query(limit=100, after=(None, "a")),
    ],
    ids=str,
)
async def test_a_search_on_an_indexed_path_has_its_index(mongodb_url: str, query: Query) -> None:
    use = IndexUse()
    async with MongoStore.connect(mongodb_url, f"test_{time.time_ns()}", listeners=[use]) as store:
        await store.ensure_indexes("things", INDEXES)
        await store.find("things", query)
        await store.count("things", query.filter, limit=10)
        await store.delete_many("things", query.filter)
    assert len(use.searches) >= 3
    assert use.unserved == []


@pytest.mark.parametrize(
    "query",
    [
        Query(by(kind="x")),
        Query(AnyOf([by(vnfdId="x"), by(kind="x")])),
        Query(sort=Sort("kind"), limit=100),
        Query(by(vnfdId="x"), sort=Sort("createdAt"), limit=100),
        Query(by(createdAt="2025"), sort=Sort("state"), limit=100),
        # MongoDB reads a partial index only if the search has its condition.
        Query(by(name="x")),
        Query(Compare("cluster/name", Op.EQ, ["x"])),
    ],
    ids=str,
)
async def test_a_search_without_an_index_is_found(mongodb_url: str, query: Query) -> None:
    use = IndexUse()
    async with MongoStore.connect(mongodb_url, f"test_{time.time_ns()}", listeners=[use]) as store:
        await store.ensure_indexes("things", INDEXES)
        await store.find("things", query)
    assert len(use.unserved) == 1


async def test_writes_and_the_outbox_have_their_index(mongodb_url: str) -> None:
    use = IndexUse()
    async with MongoStore.connect(mongodb_url, f"test_{time.time_ns()}", listeners=[use]) as store:
        for each in ("a", "b"):
            await store.insert("things", each, {"n": 1}, outbox=[Outgoing(f"m-{each}", {})])
        await store.update("things", "a", {"n": 2}, where=by(n=1), outbox=[Outgoing("m2", {})])
        await store.delete("things", "b")
        await store.pending_outbox("things")
        await store.clear_outbox("things", {"a": ["m-a"], "b": ["m-b"]})
        assert await store.pending_outbox("things")
        await store.get_many("things", ["a", "b"])
    assert len(use.searches) > 8
    assert use.unserved == []
