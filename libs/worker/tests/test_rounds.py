"""Rounds: repeated work, of which each round is done by one of the processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_kit.owners import Owners, ProcessName
from kubevnfm_kit.run import background, repeat
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker.rounds import ROUNDS, Rounds
from worlds.set_clock import SetClock

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_one_process_does_a_round_and_any_process_the_next(store: DocumentStore) -> None:
    clock = SetClock(START)
    one, other = (Rounds(store, clock, "look", 60.0) for _ in range(2))
    assert [await one.is_ours(), await other.is_ours(), await one.is_ours()] == [True, False, False]
    clock.advance(60)
    assert [await other.is_ours(), await one.is_ours()] == [True, False]


async def test_two_kinds_of_work_are_independent(store: DocumentStore) -> None:
    clock = SetClock(START)
    assert await Rounds(store, clock, "look", 60.0).is_ours()
    assert await Rounds(store, clock, "ask", 60.0).is_ours()


async def test_the_round_of_a_process_that_has_ended_is_done_again_at_once(store: DocumentStore) -> None:
    clock, name = SetClock(START), ProcessName.of_this()
    killed, alive = Owners(this=replace(name, started="1")), Owners()
    assert await Rounds(store, clock, "look", 60.0, killed).is_ours()
    next_one = Rounds(store, clock, "look", 60.0, alive)
    assert [await next_one.is_ours(), await next_one.is_ours()] == [True, False]


async def test_a_round_that_a_clock_ahead_has_claimed_holds_nothing_up(store: DocumentStore) -> None:
    ahead = SetClock(START)
    ahead.advance(3600.0)
    assert await Rounds(store, ahead, "look", 60.0).is_ours()
    assert await Rounds(store, SetClock(START), "look", 60.0).is_ours()


@pytest.mark.looptime
async def test_a_round_without_work_is_claimed_by_no_process(store: DocumentStore) -> None:
    done, due = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        done.set()

    async def is_due() -> bool:
        return due.is_set()

    rounds = Rounds(store, SetClock(START), "bring", 10.0)
    async with background(bring=rounds.repeat(work, is_due=is_due)):
        await asyncio.sleep(25.0)
        assert not done.is_set()
        assert await store.get(ROUNDS, "bring") is None
        due.set()
        await done.wait()
    assert await store.get(ROUNDS, "bring") is not None


async def starts(work: Callable[[int], Coroutine[None, None, None]], count: int, **how: float) -> list[float]:
    """Return when the first rounds of repeated work start."""
    loop, found, enough = asyncio.get_running_loop(), list[float](), asyncio.Event()

    async def look() -> None:
        found.append(loop.time())
        if len(found) == count:
            enough.set()
        await work(len(found))

    begun_at = loop.time()
    async with background(look=repeat(look, every_s=how.pop("every_s"), **how)):
        await enough.wait()
    return [at - begun_at for at in found]


@pytest.mark.looptime
async def test_a_round_starts_when_the_interval_since_the_start_of_the_last_is_over() -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(3.0 if number == 1 else 15.0)

    assert await starts(work, 4, every_s=10.0, after_s=1.0) == pytest.approx([1.0, 11.0, 26.0, 41.0], abs=0.1)


@pytest.mark.looptime
async def test_long_rounds_leave_time_for_other_work() -> None:
    async def work(_: int) -> None:
        await asyncio.sleep(10.0)

    assert await starts(work, 2, every_s=10.0, most_share=0.1) == pytest.approx([0.0, 100.0], abs=0.1)


@pytest.mark.looptime
async def test_a_round_that_fails_is_not_the_last() -> None:
    async def work(number: int) -> None:
        if number < 3:
            raise OutsideUnavailable("away")

    assert await starts(work, 4, every_s=10.0) == pytest.approx([0.0, 10.0, 20.0, 30.0], abs=0.1)
