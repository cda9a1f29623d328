"""Random filters over random documents: every adapter finds what the filter means in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from kubevnfm_store.matching import fits
from kubevnfm_store.mongo import MongoStore
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Index, Op, Query, path_of
from kubevnfm_store.sqlite import SqliteStore

NAMES = ["a", "b", "c.d", "0", "$x", "e/f", "~1"]
SCALARS: list[Any] = [None, True, False, 0, 1, 1.5, -3, "", "a", "ab", "B", "1", "ä%_", "true"]


def a_value(dice: random.Random, depth: int) -> Any:
    roll = dice.random()
    if depth == 0 or roll < 0.4:
        return dice.choice(SCALARS)
    if roll < 0.7:
        return [a_value(dice, depth - 1) for _ in range(dice.randrange(4))]
    return an_object(dice, depth - 1)


def an_object(dice: random.Random, depth: int) -> dict[str, Any]:
    return {name: a_value(dice, depth) for name in dice.sample(NAMES, dice.randrange(len(NAMES)))}


def a_path(dice: random.Random) -> str:
    return path_of(*(dice.choice(NAMES) for _ in range(dice.choice([1, 1, 2, 2, 3]))))


def a_filter(dice: random.Random, depth: int) -> Filter:
    some = range(dice.randrange(1, 4))
    kinds: list[Callable[[], Filter]] = [
        lambda: Compare(a_path(dice), dice.choice(list(Op)), [dice.choice(SCALARS) for _ in some]),
        lambda: Exists(a_path(dice), exists=dice.random() < 0.5),
        lambda: HasKey(a_path(dice), dice.sample(NAMES, len(some)), present=dice.random() < 0.5),
    ]
    if depth:
        kinds += [
            lambda: Element(a_path(dice), a_filter(dice, depth - 1)),
            lambda: AllOf([a_filter(dice, depth - 1) for _ in some]),
            lambda: AnyOf([a_filter(dice, depth - 1) for _ in some]),
        ]
    return dice.choice(kinds)()


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
