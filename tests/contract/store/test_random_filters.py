"""Random filters over random documents: every adapter finds what the filter means in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Iterator

import pytest
from contracts.random_documents import a_filter, an_object
from kubevnfm_store.matching import fits
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import DocumentStore, StoreUnavailable
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Index, Query
from kubevnfm_store.sqlite.store import SqliteStore


def kinds(sought: Filter) -> Iterator[str]:
    """Yield the names of the filters and operators that a filter consists of."""
    match sought:
        case AllOf(filters) | AnyOf(filters):
            for each in filters:
                yield from kinds(each)
        case Element(_, inner):
            yield "element"
            yield from kinds(inner)
        case HasKey(_, _, present):
            yield "has key" if present else "lacks key"
        case Compare(_, op, _):
            yield op.value
        case Exists():
            yield "exists"


class RandomSuite:
    unproven: Collection[str] = ()
    """Kinds of filters that the server of an adapter does not always answer rightly."""

    async def found(self, store: DocumentStore, sought: Filter) -> list[str]:
        return [each.id for each in await store.find("things", Query(sought))]

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
            if await self.found(store, sought) != wanted:
                assert not set(kinds(sought)).isdisjoint(self.unproven), sought
                continue
            matched += bool(wanted)
        assert matched > 50


class TestSqlite(RandomSuite):
    @pytest.fixture
    async def store(self, sqlite_store: SqliteStore) -> DocumentStore:
        return sqlite_store


@pytest.mark.server
class TestMongo(RandomSuite):
    unproven = ("element", "lacks key", "nin", "cont")
    """mongo-java-server on arrays whose elements are no objects; `test_queries` has a case and the reason for each."""

    async def found(self, store: DocumentStore, sought: Filter) -> list[str]:
        try:
            return await super().found(store, sought)
        except StoreUnavailable:  # the server refused
            return ["refused"]

    @pytest.fixture
    async def store(self, mongo_store: MongoStore) -> DocumentStore:
        return mongo_store
