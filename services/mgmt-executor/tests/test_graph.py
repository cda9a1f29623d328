"""The task graph: order, width, failure, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.graph import BadGraph, Task, run_graph


def recording(into: list[str], text: str) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        into.append(f"+{text}")
        await asyncio.sleep(0)
        into.append(f"-{text}")

    return work


async def test_a_task_waits_for_those_it_is_after_and_for_no_other() -> None:
    order: list[str] = []
    gate = asyncio.Event()

    async def slow_worker() -> None:
        await gate.wait()

    async def init() -> None:
        order.append("init")
        gate.set()

    await run_graph(
        [
            Task("prepare", "worker", slow_worker),
            Task("prepare", "master", recording(order, "master")),
            Task("init", "master", init, after=[("prepare", "master")]),
            Task("join", "worker", recording(order, "join"), after=[("prepare", "worker"), ("init", "master")]),
        ],
        slots=5,
    )
    assert order == ["+master", "-master", "init", "+join", "-join"]


async def test_no_more_tasks_take_slots_at_a_time_than_there_are() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await run_graph([Task("prepare", f"n{i}", work, takes_slot=True) for i in range(20)], slots=3)
    assert most == 3


async def test_a_task_that_waits_for_others_holds_no_slot() -> None:
    order: list[str] = []
    tasks = [
        Task("init", "m", recording(order, "init")),
        Task("join", "w", recording(order, "join"), after=[("init", "m")], takes_slot=True),
        Task("prepare", "v", recording(order, "prepare"), takes_slot=True),
    ]
    await run_graph(tasks, slots=1)
    assert order.index("+prepare") < order.index("+join")


async def test_the_first_error_ends_the_rest_and_is_raised_as_it_is() -> None:
    cancelled = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def fail() -> None:
        raise NodeFailure("no space left", node="worker1", task="prepare")

    with pytest.raises(NodeFailure, match="node worker1: no space left"):
        await run_graph([Task("prepare", "a", forever), Task("prepare", "b", fail)], slots=2)
    assert cancelled.is_set()


@pytest.mark.parametrize(
    "after", [[("init", "absent")], [("later", "m")], [("task", "m")]], ids=["nowhere", "below", "itself"]
)
async def test_a_plan_that_could_wait_for_ever_is_refused(after: list[tuple[str, str]]) -> None:
    ran: list[str] = []
    tasks = [Task("task", "m", recording(ran, "task"), after=after), Task("later", "m", recording(ran, "later"))]
    with pytest.raises(BadGraph):
        await run_graph(tasks, slots=1)
    assert not ran


async def test_two_tasks_of_one_id_are_refused() -> None:
    ran: list[str] = []
    with pytest.raises(BadGraph):
        await run_graph([Task("a", "m", recording(ran, "1")), Task("a", "m", recording(ran, "2"))], slots=1)
