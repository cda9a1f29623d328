"""Waits for many stacks of one tenant with one list call per round instead of one poll per stack.

A stack is polled every 50 ms at first and less often with time (after a tenth of its age, at most 5 s). So a fast cloud
costs milliseconds, and a slow one few requests. All stacks that are due, or nearly due, share a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kubevnfm_kit.request_ids import for_all

from kubevnfm_infra_openstack.domain.stack import Stack, StackState

ListStacks = Callable[[Sequence[str]], Awaitable[Mapping[str, Stack]]]
"""Return the existing stacks by id; a deleted one is missing."""

SHORTEST_S = 0.05
LONGEST_S = 5.0
_AGE_SHARE = 0.1
_REMEMBERED = 10_000
"""Start times in memory; more than the stacks for which one tenant waits at once."""


@dataclass
class _Watched:
    started_at: float
    due_at: float
    waiters: dict[asyncio.Future[Stack | None], frozenset[StackState]] = field(default_factory=dict)
    """The states for which each caller waits."""
    last: Stack | None = None


class StackWatch:
    """Waits for the states of stacks. Belongs to one event loop; its task runs only while a caller waits."""

    def __init__(
        self, list_stacks: ListStacks, *, shortest_s: float = SHORTEST_S, longest_s: float = LONGEST_S
    ) -> None:
        self._list, self._shortest_s, self._longest_s = list_stacks, shortest_s, longest_s
        self._watched: dict[str, _Watched] = {}
        self._started: dict[str, float] = {}
        """Loop time at which Heat began its present work, by stack id. It outlives the single wait of a caller."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def interval_s(self, age_s: float) -> float:
        """Return the pause before the next poll of a stack on which Heat has worked for ``age_s``."""
        return min(self._longest_s, max(self._shortest_s, age_s * _AGE_SHARE))

    def begin(self, stack: Stack) -> None:
        """Note that Heat begins new work on the stack, so it is polled often again."""
        self._started[stack.id] = asyncio.get_running_loop().time()

    async def settle(self, stack: Stack, *, until: frozenset[StackState], within_s: float) -> Stack | None:
        """Return the stack once it is in one of the states; after ``within_s``, return it as last seen.

        Returns None once the stack no longer exists. Raises what the list call raises.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stack | None] = loop.create_future()
        async with self._watching(stack, future, until) as watched:
            try:
                async with asyncio.timeout(within_s):
                    return await future
            except TimeoutError:
                return watched.last or stack

    @asynccontextmanager
    async def _watching(
        self, stack: Stack, future: asyncio.Future[Stack | None], until: frozenset[StackState]
    ) -> AsyncIterator[_Watched]:
        now = asyncio.get_running_loop().time()
        started_at = self._started.setdefault(stack.id, now)
        while len(self._started) > _REMEMBERED:
            self._started.pop(next(iter(self._started)))
        watched = self._watched.setdefault(stack.id, _Watched(started_at=started_at, due_at=now))
        # Polled at once: quick work has ended since the caller's last look.
        watched.due_at = min(watched.due_at, now)
        watched.waiters[future] = until
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = for_all(self._run(), name="stack-watch")
        try:
            yield watched
        finally:
            watched.waiters.pop(future, None)
            if not watched.waiters and self._watched.get(stack.id) is watched:
                del self._watched[stack.id]
                self._wake.set()  # lets the task notice that no caller is left

    async def close(self) -> None:
        """End the task. Callers that still wait are cancelled by their own owners."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._watched:
            self._wake.clear()
            now = loop.time()
            next_at = min(watched.due_at for watched in self._watched.values())
            if next_at > now:
                try:
                    async with asyncio.timeout_at(next_at):
                        await self._wake.wait()
                    continue  # a caller came or went, so another stack may be due first
                except TimeoutError:
                    now = loop.time()
            # Stacks that are almost due join this call: one request for all is cheaper than exact intervals.
            due = [
                stack_id
                for stack_id, w in self._watched.items()
                if w.due_at <= now + self.interval_s(now - w.started_at) / 4
            ]
            await self._round(due)

    async def _round(self, due: Sequence[str]) -> None:
        # gather() returns the exception, so every waiting caller gets it and this task continues for the others.
        (found,) = await asyncio.gather(self._list(due), return_exceptions=True)
        if isinstance(found, BaseException):
            for stack_id in due:
                self._notify(stack_id, found)
            return
        now = asyncio.get_running_loop().time()
        for stack_id in due:
            watched = self._watched.get(stack_id)
            if watched is None:
                continue
            before, watched.last = watched.last, found.get(stack_id)
            stack = watched.last
            if stack is None:
                self._started.pop(stack_id, None)
                self._notify(stack_id, None)
                continue
            if stack.state is StackState.GONE and (before is None or before.state is not StackState.GONE):
                # Heat shows DELETE_COMPLETE, then deletes the stack's own project in Keystone: the stack is missing after
                # that, or it becomes DELETE_FAILED. That is new work: it takes a moment, however long the deletion took.
                self.begin(stack)
                watched.started_at = now
            watched.due_at = now + self.interval_s(now - watched.started_at)
            for future, until in watched.waiters.items():
                if stack.state in until and not future.done():
                    future.set_result(stack)

    def _notify(self, stack_id: str, error: BaseException | None) -> None:
        """Give the callers that wait for this stack the error; None: the stack no longer exists."""
        watched = self._watched.pop(stack_id, None)
        for future in watched.waiters if watched else ():
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(None)
