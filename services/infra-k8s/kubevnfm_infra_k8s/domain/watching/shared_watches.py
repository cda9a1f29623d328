"""Watches that several users share: each goes on for a while without a user, so that the next one costs no request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.request_ids import for_all

from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters

S = TypeVar("S")


@dataclass
class SharedWatch(Generic[S]):
    """One watch, what it has seen, and its users."""

    state: S
    has_listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first list, and when the watch has ended."""
    users: set[asyncio.Event] = field(default_factory=set)
    error: VnfmError | None = None
    """Why the watch has ended."""
    task: asyncio.Task[None] | None = None
    ending: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Let every user look."""
        self.has_listed.set()
        for each in self.users:
            each.set()


class SharedWatches(Generic[S]):
    """The watches of all clusters, each under a key that its users agree on."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._watches: dict[Hashable, SharedWatch[S]] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, clusters: Clusters) -> AsyncIterator[Self]:
        """Yield the watches; leaving ends all of them."""
        watches = cls(clusters)
        try:
            yield watches
        finally:
            tasks = [watch.task for watch in watches._watches.values() if watch.task is not None]
            for watch in watches._watches.values():
                if watch.ending is not None:
                    watch.ending.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def join(
        self,
        key: Hashable,
        vim: VimConnection,
        user: asyncio.Event,
        state: S,
        follow: Callable[[Cluster, SharedWatch[S]], Awaitable[None]],
    ) -> SharedWatch[S]:
        """Return the watch of the key, with one more user; ``state`` and ``follow`` are those of a new one.

        ``user`` is set after each change. `leave` must follow.
        """
        watch = self._watches.get(key)
        # A watch that has ended with an error is not joined: the next user begins a new one, with its own credentials.
        if watch is None or watch.error is not None:
            watch = self._watches[key] = SharedWatch(state)
            watch.task = for_all(self._run(vim, watch, follow), name=f"watch-{key}")
        if watch.ending is not None:
            watch.ending.cancel()
            watch.ending = None
        watch.users.add(user)
        return watch

    def leave(self, key: Hashable, watch: SharedWatch[S], user: asyncio.Event, *, linger_s: float) -> None:
        """Take a user away; the watch ends after ``linger_s`` without one."""
        watch.users.discard(user)
        if not watch.users:
            if watch.ending is not None:
                watch.ending.cancel()
            watch.ending = asyncio.get_running_loop().call_later(linger_s, self._end, key, watch)

    def _end(self, key: Hashable, watch: SharedWatch[S]) -> None:
        if self._watches.get(key) is watch:
            del self._watches[key]
        if watch.task is not None:
            watch.task.cancel()

    async def _run(
        self,
        vim: VimConnection,
        watch: SharedWatch[S],
        follow: Callable[[Cluster, SharedWatch[S]], Awaitable[None]],
    ) -> None:
        try:
            # The watch holds the connection by itself: the user that began it may end before others do.
            async with self._clusters.cluster(vim) as cluster:
                await follow(cluster, watch)
        except VnfmError as error:
            watch.error = error
        finally:
            watch.wake()
