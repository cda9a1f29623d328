"""The wait for the end of an operation: an event reports it, and the store says how it ended (multicloud.md MC-004)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import OperationChanged
from kubevnfm_lcm_api.lifecycle.core.occurrence import COLLECTION
from kubevnfm_lcm_api.multicloud.waiting import OperationEnds
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.query import Stored
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until_true
from worlds.lcm_world import RING

LONG_S: Final = 3600.0


class WatchedStore(SqliteStore):
    """A store that counts the looks at operations."""

    looks = 0

    async def get(self, collection: str, id: str) -> Stored | None:
        found = await super().get(collection, id)
        self.looks += 1
        return found

    async def enter(self, state: OperationState) -> None:
        """Have the operation in a state."""
        known = await super().get(COLLECTION, "o")
        if known is not None:
            await self.delete(COLLECTION, "o")
        await self.insert(COLLECTION, "o", {"operationState": state.value})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[WatchedStore]:
    async with WatchedStore.open(tmp_path / "store.db") as opened:
        yield opened


def changed(state: OperationState, operation_id: str = "o") -> Envelope[Message]:
    event = OperationChanged(
        vnf_lcm_op_occ_id=operation_id,
        vnf_instance_id="i",
        operation="INSTANTIATE",
        state=state.value,
        state_entered_time=datetime.now(UTC),
    )
    return Envelope(event, source="/kubevnfm/lcm-api")


async def test_an_event_ends_the_waits_for_its_operation_and_no_other(store: WatchedStore) -> None:
    """MC-004: no caller that waits looks at the store before an operation has ended."""
    ends = OperationEnds(store, look_s=LONG_S)
    await store.enter(OperationState.PROCESSING)
    async with InProcessBus(RING) as bus, ends.watching(bus):
        waiting = [asyncio.create_task(ends.ended("o", LONG_S)) for _ in range(2)]

        async def have_looked() -> bool:
            return store.looks == len(waiting)

        await until_true(have_looked)
        await bus.publish(changed(OperationState.PROCESSING))
        await bus.publish(changed(OperationState.COMPLETED, "another"))
        await store.enter(OperationState.COMPLETED)
        await bus.publish(changed(OperationState.COMPLETED))
        assert await asyncio.gather(*waiting) == [OperationState.COMPLETED] * 2
    assert store.looks == 2 * len(waiting)


async def test_an_operation_has_ended_without_its_event_too(store: WatchedStore) -> None:
    """MC-004: an event may be lost on its way, or have come before the wait."""
    ends = OperationEnds(store, look_s=0.01)
    await store.enter(OperationState.PROCESSING)
    waiting = asyncio.create_task(ends.ended("o", LONG_S))
    await store.enter(OperationState.FAILED_TEMP)
    assert await waiting is OperationState.FAILED_TEMP
    assert await ends.ended("o", LONG_S) is OperationState.FAILED_TEMP
    await store.enter(OperationState.PROCESSING)
    assert await ends.ended("o", 0.02) is None
