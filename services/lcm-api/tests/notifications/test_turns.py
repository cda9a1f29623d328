"""The turns to deliver notifications: what a process that was killed leaves behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kubevnfm_kit.owners import Owners
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION
from kubevnfm_lcm_api.notifications.turns import Turns
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.set_clock import SetClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "store.db") as opened:
        await opened.insert(COLLECTION, "s", {})
        yield opened


def turns(store: SqliteStore, *, owners: Owners | None = None, ahead_s: float = 0.0) -> Turns:
    clock = SetClock(NOW)
    clock.advance(ahead_s)
    return Turns(store, clock, lease_s=15.0, owners=owners or Owners())


async def test_a_turn_is_taken_once(store: SqliteStore) -> None:
    assert await turns(store).acquire("s", "c") is not None
    assert await turns(store).acquire("s", "c") is None
    assert await turns(store, ahead_s=16.0).acquire("s", "c") is not None


async def test_a_turn_that_a_clock_ahead_has_written_holds_nothing_up(store: SqliteStore) -> None:
    assert await turns(store, ahead_s=3600.0).acquire("s", "c") is not None
    assert await turns(store).acquire("s", "c") is not None


async def test_the_turn_of_a_process_that_has_ended_is_free_but_a_back_off_stays(store: SqliteStore) -> None:
    """An hour of it, which is longer than any lease."""
    killed, alone = turns(store), turns(store, owners=Owners(is_alone=True))
    taken = await killed.acquire("s", "c")
    assert taken is not None
    assert killed.is_taken(taken)
    await store.update(COLLECTION, "s", {"turn/owner": "the name of another process"})
    assert await alone.acquire("s", "c") is not None
    assert await alone.end("s", "c", {}, back_off_s=3600.0)
    resting = await store.get(COLLECTION, "s")
    assert resting is not None
    assert alone.is_taken(resting)
    assert await alone.acquire("s", "c") is None
