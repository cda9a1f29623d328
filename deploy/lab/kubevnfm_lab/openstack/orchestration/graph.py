"""Run jobs in the order of their dependencies, as many at once as possible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Set
from typing import TypeVar

from kubevnfm_lab.openstack.orchestration.failures import validation_failed

K = TypeVar("K", bound=Hashable)
Job = Callable[[], Awaitable[None]]


class ActionFailed(Exception):
    """A resource's action failed; its text is the reason that the stack reports."""

    def __init__(self, action: str, failure: Exception) -> None:
        super().__init__(f"Resource {action} failed: {failure}")
        self.action, self.failure = action, failure


def check_order(needs: Mapping[str, Set[str]]) -> None:
    """Raise a 400 if resources depend on one another in a circle."""
    left = {name: set(waits) & needs.keys() for name, waits in needs.items()}
    while left:
        free = {name for name, waits in left.items() if not waits}
        if not free:
            raise validation_failed(f"Circular Dependency Found: {sorted(left)}")
        left = {name: waits - free for name, waits in left.items() if name not in free}


async def run(
    jobs: Mapping[K, Job],
    needs: Mapping[K, Set[K]],
    *,
    superseded: Callable[[], bool],
    failed: Callable[[ActionFailed], None],
) -> ActionFailed | None:
    """Run every job after those that it depends on; return the first failure.

    After a failure, or once ``superseded()``, no new job starts and the running ones are awaited, as in Heat's convergence;
    ``failed`` is called with the first failure at once. Cancelling it cancels the running jobs.
    """
    # Dependencies on jobs outside this run are met already.
    waits = {key: set(needs.get(key, ())) & jobs.keys() for key in jobs}
    wake: dict[K, list[K]] = {}
    for key, before in waits.items():
        for one in before:
            wake.setdefault(one, []).append(key)
    ready = [key for key, before in waits.items() if not before]
    running: dict[asyncio.Task[None], K] = {}
    first: ActionFailed | None = None

    def note(failure: ActionFailed) -> None:
        nonlocal first
        if first is None:
            first = failure
            failed(failure)

    def done(key: K) -> None:
        for other in wake.get(key, ()):
            waits[other].discard(key)
            if not waits[other]:
                ready.append(other)

    try:
        while (ready and first is None and not superseded()) or running:
            # A chain of single jobs runs in this task: creating a task for each would cost more than the job.
            if len(ready) == 1 and not running:
                key = ready.pop()
                try:
                    await jobs[key]()
                except ActionFailed as failure:
                    note(failure)
                else:
                    done(key)
                continue
            if first is None and not superseded():
                for key in ready:
                    running[asyncio.ensure_future(_as_task(jobs[key]))] = key
                ready.clear()
            # New jobs start as soon as any one is done, rather than in waves.
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                key = running.pop(task)
                error = task.exception()
                if isinstance(error, ActionFailed):
                    note(error)
                elif error is not None:
                    raise error
                else:
                    done(key)
    # Reached by cancellation, or by an error that is no ActionFailed.
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)
    return first


async def _as_task(job: Job) -> None:
    await job()
