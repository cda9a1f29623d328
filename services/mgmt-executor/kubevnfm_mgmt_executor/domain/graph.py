"""A small dependency graph of tasks: what can run side by side does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Task:
    """One piece of work on one node."""

    name: str
    """Stable: it is stored and told (``prepare``, ``join``)."""
    node: str
    work: Callable[[], Awaitable[None]] = field(repr=False, compare=False)
    after: Sequence[tuple[str, str]] = ()
    """Ids of the tasks that must be done before."""
    takes_slot: bool = False
    """Whether it counts towards the nodes that are worked on at the same time."""

    @property
    def id(self) -> tuple[str, str]:
        return (self.name, self.node)


class BadGraph(ValueError):
    """Two tasks of one id, or a task after one that is not there or after itself."""


async def run_graph(tasks: Sequence[Task], *, slots: int) -> None:
    """Run every task once those it is after are done; at most ``slots`` of those that take one at a time.

    The first error ends the rest - all tasks can be repeated - and is raised; slots go to whoever asks first.
    """
    done = {task.id: asyncio.Event() for task in tasks}
    _check(tasks)
    free = asyncio.Semaphore(slots)

    async def run(task: Task) -> None:
        for other in task.after:
            await done[other].wait()
        if task.takes_slot:
            async with free:
                await task.work()
        else:
            await task.work()
        done[task.id].set()

    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(run(task), name=f"{task.name} {task.node}")
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _check(tasks: Sequence[Task]) -> None:
    """Raise BadGraph; a plan lists tasks after those they wait for, so one look back is enough."""
    seen: set[tuple[str, str]] = set()
    for task in tasks:
        if task.id in seen:
            raise BadGraph(f"two tasks {task.id}")
        missing = [other for other in task.after if other not in seen]
        if missing:
            raise BadGraph(f"task {task.id} is after {missing[0]}, which does not stand before it")
        seen.add(task.id)
