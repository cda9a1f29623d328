"""The watch of stacks: many waits, few calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from kubevnfm_infra_openstack.domain.errors import VimUnavailable
from kubevnfm_infra_openstack.domain.stack import (
    DELETION_FAILED,
    SETTLED,
    Next,
    Stack,
    StackState,
    next_for_creation,
    state_of,
)
from kubevnfm_infra_openstack.domain.watch import StackWatch
from structlog.contextvars import bound_contextvars, get_contextvars

pytestmark = pytest.mark.looptime


class Listed:
    """A list of stacks that counts its calls."""

    def __init__(self, *ids: str) -> None:
        self.stacks = {one: Stack(one, one, StackState.MAKING) for one in ids}
        self.calls: list[tuple[float, tuple[str, ...]]] = []
        self.error: Exception | None = None

    async def __call__(self, ids: Sequence[str]) -> Mapping[str, Stack]:
        self.calls.append((asyncio.get_running_loop().time(), tuple(ids)))
        if self.error is not None:
            raise self.error
        return {one: self.stacks[one] for one in ids if one in self.stacks}

    async def turn(self, id: str, state: StackState, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self.stacks[id] = replace(self.stacks[id], state=state)


async def test_the_end_of_a_quick_stack_is_seen_within_milliseconds() -> None:
    listed = Listed("a")
    watch = StackWatch(listed)
    turning = asyncio.create_task(listed.turn("a", StackState.READY, 0.12))
    begun = asyncio.get_running_loop().time()
    stack = await watch.settle(listed.stacks["a"], until=SETTLED, within_s=20)
    assert stack is not None
    assert stack.state is StackState.READY
    assert asyncio.get_running_loop().time() - begun < 0.2
    await turning
    await watch.close()


async def test_the_calls_for_many_stacks_have_the_ids_of_no_single_command() -> None:
    """The first caller begins the task; a line about a call for another one must not have its ids."""
    bound: list[Mapping[str, object]] = []
    listed = Listed("a")

    async def listing(ids: Sequence[str]) -> Mapping[str, Stack]:
        bound.append(get_contextvars())
        return await listed(ids)

    watch = StackWatch(listing)
    with bound_contextvars(operation_id="first"):
        await watch.settle(listed.stacks["a"], until=SETTLED, within_s=20)
    assert bound
    assert not any(bound)
    await watch.close()


async def test_a_slow_stack_is_polled_less_and_less_often() -> None:
    listed = Listed("a")
    watch = StackWatch(listed)
    await watch.settle(listed.stacks["a"], until=SETTLED, within_s=600)
    times = [at for at, _ in listed.calls]
    pauses = [later - sooner for sooner, later in pairwise(times)]
    assert pauses[0] == pytest.approx(0.05, abs=0.01)
    assert pauses[-1] == pytest.approx(5, abs=0.1)
    assert len(times) < 200
    await watch.close()


async def test_the_age_of_a_stack_survives_a_single_wait() -> None:
    listed = Listed("a")
    watch = StackWatch(listed)
    for _ in range(5):
        await watch.settle(listed.stacks["a"], until=SETTLED, within_s=20)
    last = [at for at, _ in listed.calls if at > 90]
    assert len(last) < 5
    await watch.close()


async def test_stacks_of_the_same_age_share_their_calls() -> None:
    listed = Listed(*(f"s{n}" for n in range(100)))
    watch = StackWatch(listed)
    await asyncio.gather(*(watch.settle(s, until=SETTLED, within_s=20) for s in list(listed.stacks.values())))
    assert len(listed.calls) < 60
    assert sum(len(ids) == 100 for _, ids in listed.calls) > len(listed.calls) / 2
    await watch.close()


async def test_a_stack_that_is_added_later_is_polled_at_once() -> None:
    listed = Listed("old", "new")
    watch = StackWatch(listed)
    old = asyncio.create_task(watch.settle(listed.stacks["old"], until=SETTLED, within_s=100))
    await asyncio.sleep(60)
    listed.stacks["new"] = replace(listed.stacks["new"], state=StackState.READY)
    begun = asyncio.get_running_loop().time()
    await watch.settle(listed.stacks["new"], until=SETTLED, within_s=20)
    assert asyncio.get_running_loop().time() - begun < 0.1
    await old
    await watch.close()


async def test_a_deleted_stack_is_none() -> None:
    listed = Listed("a", "b")
    watch = StackWatch(listed)
    a, b = listed.stacks["a"], listed.stacks.pop("b")

    async def end() -> None:
        await listed.turn("a", StackState.GONE, 1)
        await asyncio.sleep(1)
        del listed.stacks["a"]

    ending = asyncio.create_task(end())
    begun = asyncio.get_running_loop().time()
    assert await asyncio.gather(*(watch.settle(s, until=DELETION_FAILED, within_s=20) for s in (a, b))) == [None, None]
    # DELETE_COMPLETE is not the end: the stack is still listed.
    assert 2 <= asyncio.get_running_loop().time() - begun < 2.5
    await ending
    await watch.close()


async def test_a_deletion_that_fails_after_all_resources_are_gone_has_failed() -> None:
    """Seen on a real Zed while Keystone was away: Heat shows DELETE_COMPLETE, cannot delete its own project, and then shows DELETE_FAILED."""
    listed = Listed("a")
    watch = StackWatch(listed)
    a = listed.stacks["a"]

    async def end() -> None:
        await listed.turn("a", StackState.GONE, 1)
        await listed.turn("a", StackState.STUCK, 5)

    ending = asyncio.create_task(end())
    left = await watch.settle(a, until=DELETION_FAILED, within_s=20)
    assert left is not None
    assert left.state is StackState.STUCK
    await ending
    await watch.close()


async def test_the_end_of_a_long_deletion_is_seen_soon_and_one_that_does_not_come_takes_few_calls() -> None:
    listed = Listed("a")
    watch = StackWatch(listed)
    ending = asyncio.create_task(listed.turn("a", StackState.GONE, 600))
    await watch.settle(listed.stacks["a"], until=DELETION_FAILED, within_s=700)
    after = [at for at, _ in listed.calls if at > 600]
    assert after[1] - after[0] < 0.1
    assert len(after) < 100
    await ending
    await watch.close()


async def test_each_wait_has_its_own_states() -> None:
    listed = Listed("a")
    watch = StackWatch(listed)
    turning = asyncio.create_task(listed.turn("a", StackState.STUCK, 1))
    made, left = await asyncio.gather(
        watch.settle(listed.stacks["a"], until=frozenset({StackState.READY}), within_s=3),
        watch.settle(listed.stacks["a"], until=DELETION_FAILED, within_s=20),
    )
    assert made is not None
    assert left is not None
    assert left.state is StackState.STUCK
    await turning
    await watch.close()


async def test_an_error_reaches_all_waits_and_the_next_wait_works() -> None:
    listed = Listed("a", "b")
    watch = StackWatch(listed)
    listed.error = VimUnavailable("Heat", "503")
    waits = [watch.settle(s, until=SETTLED, within_s=20) for s in list(listed.stacks.values())]
    assert all(isinstance(r, VimUnavailable) for r in await asyncio.gather(*waits, return_exceptions=True))
    listed.error = None
    listed.stacks["a"] = replace(listed.stacks["a"], state=StackState.READY)
    assert await watch.settle(listed.stacks["a"], until=SETTLED, within_s=20) == listed.stacks["a"]
    await watch.close()


async def test_without_waits_there_are_no_calls() -> None:
    listed = Listed("a")
    watch = StackWatch(listed)
    await watch.settle(listed.stacks["a"], until=SETTLED, within_s=1)
    asked = len(listed.calls)
    await asyncio.sleep(60)
    assert len(listed.calls) == asked
    await watch.close()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("CREATE_IN_PROGRESS", StackState.MAKING),
        ("CREATE_COMPLETE", StackState.READY),
        ("UPDATE_COMPLETE", StackState.READY),
        ("CREATE_FAILED", StackState.BROKEN),
        ("DELETE_IN_PROGRESS", StackState.GOING),
        ("DELETE_FAILED", StackState.STUCK),
        ("DELETE_COMPLETE", StackState.GONE),
        ("SOMETHING_NEW", StackState.MAKING),
    ],
)
async def test_each_status_of_heat_is_mapped_to_a_state(status: str, state: StackState) -> None:
    assert state_of(status) is state


@pytest.mark.parametrize(
    ("state", "tags", "wanted"),
    [
        (None, (), Next.MAKE),
        (StackState.GONE, (), Next.MAKE),
        (StackState.MAKING, (), Next.WAIT),
        (StackState.READY, (), Next.READ),
        (StackState.BROKEN, ("op/1",), Next.FAIL),
        (StackState.BROKEN, ("op/0",), Next.REPLACE),
        (StackState.STUCK, ("op/1",), Next.REPLACE),
        (StackState.GOING, ("op/1",), Next.WAIT_GONE),
    ],
)
async def test_the_present_stack_decides_the_next_action(
    state: StackState | None, tags: tuple[str, ...], wanted: Next
) -> None:
    found = Stack("s", "s", state, tags=("inst", *tags)) if state is not None else None
    assert next_for_creation(found, made_by="op/1") is wanted
