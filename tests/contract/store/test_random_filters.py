"""Random filters over random documents: every adapter finds what the filter means in memory."""

from __future__ import annotations

import asyncio
import random

import pytest
from kubevnfm_store.matching import fits
from kubevnfm_store.mongo import MongoStore
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Index, Query
from kubevnfm_store.sqlite import SqliteStore
from random_documents import a_filter, an_object


class RandomSuite:
    @pytest.fixture
    async def store(self) -> DocumentStore:
        raise NotImplementedError

    @pytest.mark.parametrize("seed", range(4))
    async def test_random_filters_find_what_they_mean(self, store: DocumentStore, seed: int) -> None:
        dice = random.Random(seed)
        bodies = {f"t{n:02}": an_object(dice, 3) for n in range(60)}
        await store.ensure_indexes("things", [Index(["a"]), Index(["b", "c.d"]), Index(["a/b"])])
        await asyncio.gather(*(store.insert("things", name, body) for name, body in bodies.items()))
        matched = 0
        for _ in range(150):
            sought = a_filter(dice, 2)
            wanted = [name for name, body in bodies.items() if fits(sought, body)]
            assert [each.id for each in await store.find("things", Query(sought))] == wanted, sought
            matched += bool(wanted)
        assert matched > 50


class TestSqlite(RandomSuite):
    @pytest.fixture
    async def store(self, sqlite_store: SqliteStore) -> DocumentStore:
        return sqlite_store


@pytest.mark.server
class TestMongo(RandomSuite):
    @pytest.fixture
    async def store(self, mongo_store: MongoStore) -> DocumentStore:
        return mongo_store
