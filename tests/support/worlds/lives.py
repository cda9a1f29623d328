"""Handlers whose process dies again and again: each life ends just after a write that no earlier one has made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")

_WRITES_TO_CLUSTERS: Final = ("apply", "create", "patch", "scale", "delete")
_WRITES_TO_STORES: Final = ("insert", "replace", "update", "delete", "delete_many")


@dataclass
class Lives:
    """Ends a life after each write to a cluster or a store; its answer is lost, as with SIGKILL.

    A write is known by what it does to which object, and how often the same life has done that before.
    """

    deaths: list[str] = field(default_factory=list)
    """The write after which each life ended."""
    _known: set[tuple[str, int]] = field(default_factory=set)
    _made: Counter[str] = field(default_factory=Counter)
    _life: asyncio.Task[Any] | None = None
    _is_over: bool = False

    async def until_done(self, deliver: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Deliver a command again after each death, until a life makes no new write; return its result."""
        self._known.clear()
        while True:
            self._made.clear()
            self._is_over = False
            self._life = life = asyncio.create_task(deliver(), name="life")
            try:
                return await life
            except asyncio.CancelledError:
                if not self._is_over:
                    raise
            finally:
                self._life = None

    def clusters(self, clusters: Any) -> Any:
        """Return the connections to clusters as mortal handlers have them."""
        return _MortalClusters(clusters, self)

    def store(self, store: Any) -> Any:
        """Return the store as mortal handlers have it."""
        return _Mortal(store, self, _WRITES_TO_STORES)

    async def write(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a write of the current life; it is the last one if it is new. Outside of lives it is a plain write."""
        if self._is_over:
            raise asyncio.CancelledError
        result = await call()
        if self._life is None or not result:  # nothing was there to delete or change
            return result
        self._made[name] += 1
        write = (name, self._made[name])
        if write in self._known:
            return result
        self._known.add(write)
        self.deaths.append(name)
        self._is_over = True
        self._life.cancel()
        await asyncio.Event().wait()  # the answer never comes
        return None


@dataclass(frozen=True)
class _Mortal:
    """An object some of whose methods are writes; the first arguments of a write name what it changes."""

    of: Any
    lives: Lives
    writes: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.of, name)
        if name == "hiding":  # the same cluster, whose messages hide some values
            return lambda *args: _Mortal(method(*args), self.lives, self.writes)
        if name not in self.writes:
            return method

        def call(*args: Any, **more: Any) -> Any:
            if more.get("dry_run") or (name == "scale" and more.get("replicas") is None):
                return method(*args, **more)
            return self.lives.write(
                f"{name} {getattr(args[0], 'plural', args[0])} {args[1]}", lambda: method(*args, **more)
            )

        return call


@dataclass(frozen=True)
class _MortalClusters:
    of: Any
    lives: Lives

    @asynccontextmanager
    async def cluster(self, vim: Any) -> AsyncIterator[Any]:
        """See the port."""
        async with self.of.cluster(vim) as cluster:
            yield _Mortal(cluster, self.lives, _WRITES_TO_CLUSTERS)
