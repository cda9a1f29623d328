"""Waits for many stacks of one tenant with one list call per round, not one poll per stack.

A stack is asked for every 50 ms while it is young and ever more rarely as it ages (a tenth of its age, at most 5 s), so
quick infrastructure costs milliseconds and slow one few requests. All stacks that are due, or nearly, share a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kubevnfm_infra_openstack.domain.stack import Stack, StackState

ListStacks = Callable[[Sequence[str]], Awaitable[Mapping[str, Stack]]]
"""Return those of the stacks, by id, that exist (a deleted one is missing, or GONE)."""

SHORTEST_S = 0.05
LONGEST_S = 5.0
_AGE_SHARE = 0.1
_REMEMBERED = 10_000
"""Birthdays kept: more stacks than one tenant waits for at once."""


@dataclass
class _Watched:
    born_at: float
    due_at: float
    waiters: dict[asyncio.Future[Stack | None], frozenset[StackState]] = field(default_factory=dict)
    """Who waits, and for which states."""
    last: Stack | None = None


class StackWatch:
    """Tells when stacks have settled. Belongs to one event loop; runs a task only while somebody waits."""

    def __init__(
        self, list_stacks: ListStacks, *, shortest_s: float = SHORTEST_S, longest_s: float = LONGEST_S
    ) -> None:
        self._list, self._shortest_s, self._longest_s = list_stacks, shortest_s, longest_s
        self._watched: dict[str, _Watched] = {}
        self._born: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def interval_s(self, age_s: float) -> float:
        """Return the pause before a stack of this age is asked for again."""
        return min(self._longest_s, max(self._shortest_s, age_s * _AGE_SHARE))

    def begin(self, stack: Stack) -> None:
        """Note that Heat begins something new with the stack: it is young again."""
        self._born[stack.id] = asyncio.get_running_loop().time()

    async def settle(self, stack: Stack, *, until: frozenset[StackState], within_s: float) -> Stack | None:
        """Return the stack once it is in one of the states, None once it is gone, or as it was last seen.

        Raises what the list call raises.
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
        born_at = self._born.setdefault(stack.id, now)
        while len(self._born) > _REMEMBERED:
            self._born.pop(next(iter(self._born)))
        watched = self._watched.setdefault(stack.id, _Watched(born_at=born_at, due_at=now))
        watched.due_at = min(watched.due_at, now)  # at once: what was quick is done by now
        watched.waiters[future] = until
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="stack-watch")
        try:
            yield watched
        finally:
            watched.waiters.pop(future, None)
            if not watched.waiters and self._watched.get(stack.id) is watched:
                del self._watched[stack.id]
                self._wake.set()  # the last one ends the task

    async def close(self) -> None:
        """End the task; whoever still waits is cancelled by its own owner."""
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
                    continue  # somebody came or went: look again who is due
                except TimeoutError:
                    now = loop.time()
            due = [
                stack_id
                for stack_id, w in self._watched.items()
                if w.due_at <= now + self.interval_s(now - w.born_at) / 4
            ]
            await self._round(due)

    async def _round(self, due: Sequence[str]) -> None:
        # gather, so that whatever goes wrong reaches everyone who waits for the answer, and this task goes on
        (found,) = await asyncio.gather(self._list(due), return_exceptions=True)
        if isinstance(found, BaseException):
            for stack_id in due:
                self._tell(stack_id, found)
            return
        now = asyncio.get_running_loop().time()
        for stack_id in due:
            watched = self._watched.get(stack_id)
            if watched is None:
                continue
            stack = watched.last = found.get(stack_id)
            if stack is None or stack.state is StackState.GONE:
                self._born.pop(stack_id, None)
                self._tell(stack_id, None)
                continue
            watched.due_at = now + self.interval_s(now - watched.born_at)
            for future, until in watched.waiters.items():
                if stack.state in until and not future.done():
                    future.set_result(stack)

    def _tell(self, stack_id: str, news: BaseException | None) -> None:
        watched = self._watched.pop(stack_id, None)
        for future in watched.waiters if watched else ():
            if future.done():
                continue
            if isinstance(news, BaseException):
                future.set_exception(news)
            else:
                future.set_result(None)
