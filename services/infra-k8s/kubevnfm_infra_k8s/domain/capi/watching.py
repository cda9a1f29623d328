"""Watches of whole kinds, one for each kind and management cluster, shared by all waits there (capi.md CR-058)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Self

from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.capi.contract import NAME_LABEL
from kubevnfm_infra_k8s.domain.objects import Body, Resource, field_at, labels_of
from kubevnfm_infra_k8s.domain.ports import Clusters

_LINGER_S: Final = 30.0
"""How long a watch goes on without a user: a wait gives its worker back for a moment and then continues."""

WatchKey = tuple[str, Resource]


@dataclass
class _Watch:
    """One watch and its users."""

    bodies: Mapping[str, Body] = field(default_factory=dict)
    has_listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first list, and when the watch has ended."""
    users: set[asyncio.Event] = field(default_factory=set)
    error: BaseException | None = None
    task: asyncio.Task[None] | None = None
    ending: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Let every user look."""
        self.has_listed.set()
        for each in self.users:
            each.set()


def _is_of(name: str, body: Body) -> bool:
    return name in (labels_of(body).get(NAME_LABEL), field_at(body, "spec", "clusterName"))


@dataclass(frozen=True)
class Listed:
    """The objects of one Cluster as listed once in its namespace."""

    bodies: Mapping[Resource, Sequence[Body]]
    name: str

    def objects(self, resource: Resource) -> Sequence[Body]:
        """Return the objects of a kind that belong to the Cluster."""
        return [each for each in self.bodies[resource] if _is_of(self.name, each)]

    def named(self, resource: Resource, name: str) -> Body | None:
        """Return the object of this name."""
        return next((each for each in self.bodies[resource] if field_at(each, "metadata", "name") == name), None)


class ClusterView:
    """The objects of one Cluster as last seen by the shared watches."""

    def __init__(
        self, watches: Mapping[Resource, _Watch], changed: asyncio.Event, *, namespace: str, name: str
    ) -> None:
        self._watches, self._changed = watches, changed
        self._namespace, self._name = namespace, name

    def objects(self, resource: Resource) -> Sequence[Body]:
        """Return the objects of a kind that belong to the Cluster. Raises the error of a watch that has ended."""
        watch = self._watches[resource]
        if watch.error is not None:
            raise watch.error
        return [each for each in watch.bodies.values() if self._is_mine(each)]

    def named(self, resource: Resource, name: str) -> Body | None:
        """Return the object of this name in the Cluster's namespace."""
        watch = self._watches[resource]
        if watch.error is not None:
            raise watch.error
        return watch.bodies.get(f"{self._namespace}/{name}")

    def _is_mine(self, body: Body) -> bool:
        return field_at(body, "metadata", "namespace") == self._namespace and _is_of(self._name, body)

    async def change(self, *, within_s: float) -> bool:
        """Return True after a change of any watched object, False if there is none in time."""
        try:
            async with asyncio.timeout(max(within_s, 0.0)):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


class ClusterWatches:
    """The watches of all management clusters."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._watches: dict[WatchKey, _Watch] = {}

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

    @asynccontextmanager
    async def viewing(
        self, vim: VimConnection, endpoint: str, resources: Sequence[Resource], *, namespace: str, name: str
    ) -> AsyncIterator[ClusterView]:
        """Yield the view of one Cluster, which is complete at once; ``endpoint``: of the management cluster."""
        changed = asyncio.Event()
        mine = {resource: self._join(vim, endpoint, resource, changed) for resource in resources}
        try:
            for watch in mine.values():
                await watch.has_listed.wait()
            yield ClusterView(mine, changed, namespace=namespace, name=name)
        finally:
            for resource, watch in mine.items():
                self._leave((endpoint, resource), watch, changed)

    def _join(self, vim: VimConnection, endpoint: str, resource: Resource, changed: asyncio.Event) -> _Watch:
        key = (endpoint, resource)
        watch = self._watches.get(key)
        # A watch that has ended with an error is not joined: the next wait begins a new one, with its own credentials.
        if watch is None or watch.error is not None:
            watch = self._watches[key] = _Watch()
            watch.task = asyncio.create_task(self._follow(vim, resource, watch), name=f"watch-{resource.kind}")
        if watch.ending is not None:
            watch.ending.cancel()
            watch.ending = None
        watch.users.add(changed)
        return watch

    def _leave(self, key: WatchKey, watch: _Watch, changed: asyncio.Event) -> None:
        watch.users.discard(changed)
        if not watch.users:
            watch.ending = asyncio.get_running_loop().call_later(_LINGER_S, self._end, key, watch)

    def _end(self, key: WatchKey, watch: _Watch) -> None:
        if self._watches.get(key) is watch:
            del self._watches[key]
        if watch.task is not None:
            watch.task.cancel()

    async def _follow(self, vim: VimConnection, resource: Resource, watch: _Watch) -> None:
        try:
            # The watch holds the connection by itself: the wait that began it may end before others do.
            async with self._clusters.cluster(vim) as cluster, aclosing(cluster.follow(resource)) as following:
                async for found in following:
                    watch.bodies = found
                    watch.wake()
        except VnfmError as error:
            watch.error = error
        finally:
            watch.wake()
