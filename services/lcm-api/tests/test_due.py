"""Work that is due: a system that does not answer holds up its own work alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from kubevnfm_kit.clock import rfc3339
from kubevnfm_lcm_api import due
from kubevnfm_lcm_api.due import DUE, DueWork
from kubevnfm_store.query import Query, Stored
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until
from worlds.set_clock import SetClock

NOW: Final = datetime(2026, 6, 22, tzinfo=UTC)
THINGS: Final = "things"


@dataclass
class World:
    """Documents, and the systems that their work asks: those that hang answer when they are released."""

    store: SqliteStore
    clock: SetClock = field(default_factory=lambda: SetClock(NOW))
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    passed_s: float = 0.0
    hangs: dict[str, asyncio.Event] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def due(self, source: str, count: int, *, behind: int = 0) -> None:
        """Store documents of a source that are due, behind others."""
        for number in range(count):
            at = rfc3339(NOW - timedelta(hours=1) + timedelta(seconds=behind + number))
            body = {"source": source, "internal": {"dueAt": at}}
            await self.store.insert(THINGS, f"{source}-{number:03}", body)

    async def work(self, stored: Stored, _: str) -> None:
        """Ask the source, and be due no more."""
        self.running.append(stored.id)
        if (hang := self.hangs.get(stored.body["source"])) is not None:
            await hang.wait()
        self.running.remove(stored.id)
        await self.store.update(THINGS, stored.id, {}, unset=[DUE])
        self.done.append(stored.id)

    async def pass_s(self, seconds: float) -> None:
        """Have time pass, and have what is due looked for."""
        self.passed_s += seconds
        self.clock.advance(seconds)
        self.woken.set()

    async def until_running(self, *ids: str) -> None:
        """Return once exactly the work of these runs."""

        async def found() -> bool | None:
            return True if sorted(self.running) == sorted(ids) else None

        await until(found)

    async def until_done(self, *ids: str) -> None:
        """Return once these are done."""

        async def found() -> bool | None:
            return True if set(ids) <= set(self.done) else None

        await until(found)

    async def due_at(self) -> dict[str, datetime]:
        """Return when documents are due."""
        found: Sequence[Stored] = await self.store.find(THINGS, Query())
        times = {each.id: each.body["internal"].get("dueAt") for each in found}
        return {name: datetime.fromisoformat(at) for name, at in times.items() if at is not None}


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with SqliteStore.open(tmp_path / "store.db") as store:
        world = World(store)
        monkeypatch.setattr(due, "time", SimpleNamespace(monotonic=lambda: world.passed_s))
        yield world


def names(source: str, *numbers: int) -> list[str]:
    return [f"{source}-{number:03}" for number in numbers]


def running(world: World) -> Any:
    made = DueWork(world.store, world.clock, THINGS, world.work, world.woken, lambda body: str(body["source"]))
    return asyncio.create_task(made.run())


async def test_a_source_that_hangs_leaves_half_of_the_places_and_then_all_but_one(world: World) -> None:
    """API-209."""
    world.hangs["gone"] = asyncio.Event()
    await world.due("gone", 20)
    await world.due("fine", 3, behind=100)
    task = running(world)
    await world.until_done(*names("fine", 0, 1, 2))
    await world.until_running(*names("gone", *range(8)))
    await world.pass_s(6)
    first, world.hangs["gone"] = world.hangs["gone"], asyncio.Event()
    first.set()
    await world.until_done(*names("gone", *range(8)))
    # Slow, as it was the last time: one at a time, and the others are left for a moment.
    await world.pass_s(10)

    async def one_runs() -> bool | None:
        return True if len(world.running) == 1 else None

    await until(one_runs)
    await world.due("late", 1)
    world.woken.set()
    await world.until_done("late-000")
    assert len(world.running) == 1

    # It answers at once again.
    world.hangs.pop("gone").set()

    async def all_done() -> bool | None:
        await world.pass_s(10)
        return True if set(names("gone", *range(20))) <= set(world.done) else None

    await until(all_done)
    task.cancel()


async def test_what_waits_for_a_source_that_hangs_hides_nothing_behind_it(world: World) -> None:
    """API-209: more of it is due than is read at once."""
    world.hangs["gone"] = asyncio.Event()
    await world.due("gone", 120)
    await world.due("fine", 1, behind=500)
    task = running(world)
    await world.until_running(*names("gone", *range(8)))
    await world.pass_s(6)
    await world.until_done("fine-000")
    later = await world.due_at()
    assert all(later[each] > world.clock.now() for each in names("gone", *range(8, 120)))
    task.cancel()


async def test_many_sources_that_hang_have_half_of_the_places(world: World) -> None:
    """API-209: a user may name many systems that never answer."""
    many = [f"gone{number:02}" for number in range(16)]
    ids = [f"{source}-000" for source in many]
    first = asyncio.Event()
    for source in many:
        world.hangs[source] = first
        await world.due(source, 1)
    task = running(world)
    await world.until_running(*ids)
    await world.due("fine", 1)
    await world.pass_s(6)
    assert world.done == []
    world.hangs.clear()
    first.set()
    await world.until_done("fine-000", *ids)

    world.done.clear()
    world.hangs = {source: asyncio.Event() for source in many}
    for each in ("fine-000", *ids):
        await world.store.update(THINGS, each, {DUE: rfc3339(NOW + timedelta(seconds=7))})
    await world.pass_s(60)
    await world.until_done("fine-000")
    await world.until_running(*ids[:8])
    task.cancel()
