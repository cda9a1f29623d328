"""Turns and the lead of the inventory: what a process that was killed leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kubevnfm_infra_k8s.adapters.leases import StoredLeadership
from kubevnfm_infra_k8s.adapters.turns import TURNS, StoredTurns
from kubevnfm_infra_k8s.domain.inventory.ports import Term
from kubevnfm_infra_k8s.domain.reconciling.ports import TurnTaken
from kubevnfm_kit.owners import Owners
from kubevnfm_store.query import AllOf, Query
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.set_clock import SetClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "store.db") as opened:
        yield opened


async def test_a_turn_of_a_process_that_has_ended_or_of_a_clock_ahead_is_free(store: SqliteStore) -> None:
    clock = SetClock(NOW)
    others, alone = StoredTurns(store, clock, Owners()), StoredTurns(store, clock, Owners(is_alone=True))
    async with others.held("link", within_s=0.0):
        with pytest.raises(TurnTaken):
            async with others.held("link", within_s=0.0):
                pass
        (turn,) = await store.find(TURNS, Query(AllOf()))
        await store.update(TURNS, turn.id, {"holder": "the name of another process"})
        async with alone.held("link", within_s=0.0):
            pass
        await store.insert(TURNS, "ahead", {"holder": "another", "until": "2026-01-01T01:00:00.000Z"})
        async with others.held("ahead", within_s=0.0):
            pass


@pytest.mark.parametrize("until", ["2026-01-01T00:00:10.000Z", "2026-01-01T01:00:00.000Z"])
async def test_the_lead_of_a_process_that_has_ended_is_taken_at_once(store: SqliteStore, until: str) -> None:
    """Within its lease, and by a clock that was an hour ahead."""
    await store.insert(TURNS, "inventory", {"holder": "the name of another process", "until": until, "term": 3})
    led = asyncio.Event()

    async def work(_: Term) -> None:
        led.set()
        await asyncio.Event().wait()

    leadership = StoredLeadership(store, SetClock(NOW), lease_s=15.0, owners=Owners(is_alone=True))
    leading = asyncio.create_task(leadership.lead(work))
    async with asyncio.timeout(300):
        await led.wait()
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
