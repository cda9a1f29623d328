"""A small dependency graph of tasks: tasks that do not depend on each other run side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

TaskId = tuple[str, str]
"""Name and node."""


@dataclass(frozen=True)
class Task:
    """One piece of work on one node."""

    name: str
    """Stable, because journal, progress and logs store it (``prepare``, ``join``)."""
    node: str
    work: Callable[[], Awaitable[None]] = field(repr=False, compare=False)
    after: Sequence[TaskId] = ()
    """Ids of the tasks that must be done before."""
    takes_slot: bool = False
    """Whether it counts towards the nodes that are worked on at the same time."""

    @property
    def id(self) -> TaskId:
        return (self.name, self.node)


class BadGraph(ValueError):
    """Two tasks have one id, or a task comes after one that does not stand before it."""


async def run_graph(tasks: Sequence[Task], *, slots: int) -> None:
    """Run every task once those that it comes after are done.

    At most ``slots`` of the tasks that take a slot run at the same time; they get it in the order in which they ask.
    The first error cancels the other tasks, which is safe because every task can be repeated. Raises that error.
    """
    done = {task.id: asyncio.Event() for task in tasks}
    _check(tasks)
    free = asyncio.Semaphore(slots)

    async def run(task: Task) -> None:
        for other in task.after:
            await done[other].wait()
        # The slot is taken after the waiting: a task that waits with a slot could block the task that it waits for.
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
        # Callers choose the failure's code and text by the class of the error, and a group has none of its own.
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _check(tasks: Sequence[Task]) -> None:
    """Raise BadGraph. A plan lists tasks behind those that they wait for, so one pass also excludes cycles."""
    seen: set[TaskId] = set()
    for task in tasks:
        if task.id in seen:
            raise BadGraph(f"two tasks have the id {task.id}")
        missing = [other for other in task.after if other not in seen]
        if missing:
            raise BadGraph(f"task {task.id} comes after {missing[0]}, which does not stand before it")
        seen.add(task.id)
