"""Watches of whole kinds, one for each kind and management cluster, shared by all waits there (capi.md CR-058)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

from kubevnfm_events import VimConnection

from kubevnfm_infra_k8s.domain.capi.contract import NAME_LABEL
from kubevnfm_infra_k8s.domain.objects import Body, Resource, field_at, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, Seen
from kubevnfm_infra_k8s.domain.shared_watches import SharedWatch, SharedWatches

_LINGER_S: Final = 30.0
"""How long a watch goes on without a user: a wait gives its worker back for a moment and then continues."""

Bodies = dict[str, Body]
"""The objects of a kind by ``namespace/name``."""
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "labels")
"""The parts of metadata that are kept: annotations may repeat a whole Secret, as kubectl writes them."""


@dataclass(frozen=True)
class MetadataOf:
    """The objects of a kind that have a label: they are watched without their content."""

    resource: Resource
    label: str


Watched = Resource | MetadataOf


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
        self, watches: Mapping[Watched, SharedWatch[Bodies]], changed: asyncio.Event, *, namespace: str, name: str
    ) -> None:
        self._watches, self._changed = watches, changed
        self._namespace, self._name = namespace, name

    def objects(self, resource: Resource) -> Sequence[Body]:
        """Return the objects of a kind that belong to the Cluster. Raises the error of a watch that has ended."""
        watch = self._watches[resource]
        if watch.error is not None:
            raise watch.error
        return [each for each in watch.state.values() if self._is_mine(each)]

    def named(self, resource: Watched, name: str) -> Body | None:
        """Return the object of this name in the Cluster's namespace."""
        watch = self._watches[resource]
        if watch.error is not None:
            raise watch.error
        return watch.state.get(f"{self._namespace}/{name}")

    def _is_mine(self, body: Body) -> bool:
        return field_at(body, "metadata", "namespace") == self._namespace and _is_of(self._name, body)

    def beside(self, *, namespace: str, name: str) -> ClusterView:
        """Return the view of another Cluster, by the same watches; both see each change, and one of them awaits it."""
        return ClusterView(self._watches, self._changed, namespace=namespace, name=name)

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

    def __init__(self, shared: SharedWatches[Bodies]) -> None:
        self._shared = shared

    @classmethod
    @asynccontextmanager
    async def open(cls, clusters: Clusters) -> AsyncIterator[Self]:
        """Yield the watches; leaving ends all of them."""
        async with SharedWatches[Bodies].open(clusters) as shared:
            yield cls(shared)

    @asynccontextmanager
    async def viewing(
        self, vim: VimConnection, endpoint: str, resources: Sequence[Watched], *, namespace: str, name: str
    ) -> AsyncIterator[ClusterView]:
        """Yield the view of one Cluster, which is complete at once; ``endpoint``: of the management cluster."""
        changed = asyncio.Event()
        mine = {each: self._shared.join((endpoint, each), vim, changed, {}, _following(each)) for each in resources}
        try:
            for watch in mine.values():
                await watch.has_listed.wait()
            yield ClusterView(mine, changed, namespace=namespace, name=name)
        finally:
            for resource, watch in mine.items():
                self._shared.leave((endpoint, resource), watch, changed, linger_s=_LINGER_S)


def _following(watched: Watched) -> Callable[[Cluster, SharedWatch[Bodies]], Awaitable[None]]:
    async def follow(cluster: Cluster, watch: SharedWatch[Bodies]) -> None:
        async with aclosing(_changes(cluster, watched)) as following:
            async for seen in following:
                if seen.is_all:
                    watch.state.clear()
                watch.state.update(seen.found)
                for each in seen.gone:
                    watch.state.pop(each, None)
                watch.wake()

    return follow


def _changes(cluster: Cluster, watched: Watched) -> AsyncGenerator[Seen[Body], None]:
    if isinstance(watched, MetadataOf):
        return cluster.follow_metadata(watched.resource, _identity, labels=watched.label)
    return cluster.follow(watched)


def _identity(body: Body) -> Body:
    metadata = field_at(body, "metadata") or {}
    return {"metadata": {name: metadata[name] for name in _IDENTITY if name in metadata}}
