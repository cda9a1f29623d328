"""Watches of whole kinds, one for each kind and management cluster, shared by all waits there (capi.md CR-058)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from kubevnfm_events import VimConnection

from kubevnfm_infra_k8s.domain.capi.contract import NAME_LABEL
from kubevnfm_infra_k8s.domain.concurrency import is_set
from kubevnfm_infra_k8s.domain.objects import Body, Resource, field_at, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Seen
from kubevnfm_infra_k8s.domain.watching.shared_watches import SharedWatch, SharedWatches

_LINGER_S: Final = 30.0
"""How long a watch goes on without a user: a wait gives its worker back for a moment and then continues."""

_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "labels")
"""The parts of metadata that are kept: annotations may repeat a whole Secret, as kubectl writes them."""


@dataclass(frozen=True)
class MetadataOf:
    """The objects of a kind that have a label: they are watched without their content."""

    resource: Resource
    label: str


Watched = Resource | MetadataOf


Place = tuple[str, str]
"""The namespace and name of a Cluster."""
_EVERY_PLACE: Final = ("", "")


def _clusters_of(body: Body) -> set[str]:
    """Return the names of the Clusters that an object is or belongs to; an object without an owner yet has none."""
    named = {labels_of(body).get(NAME_LABEL), field_at(body, "spec", "clusterName")}
    if body.get("kind") == "Cluster":
        named.add(field_at(body, "metadata", "name"))
    return {str(each) for each in named if each}


@dataclass
class WatchedObjects:
    """The objects of a kind, each also with its Cluster, and who waits for changes of which Cluster.

    So a change costs one look at one Cluster, however many there are.
    """

    bodies: dict[str, Body] = field(default_factory=dict)
    """By ``namespace/name``."""
    of_clusters: dict[Place, dict[str, Body]] = field(default_factory=lambda: defaultdict(dict))
    users: dict[Place, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))
    """Those of `_EVERY_PLACE` wait for any change."""

    def update(self, seen: Seen[Body]) -> None:
        """Take in what the watch has seen, and wake those who wait for it."""
        gone = self.bodies.keys() - seen.found.keys() if seen.is_all else seen.gone
        woken = set(self.users.get(_EVERY_PLACE, ()))
        for name in [*gone, *seen.found]:
            before, after = self.bodies.pop(name, None), seen.found.get(name)
            for each in (before, after):
                if each is None:
                    continue
                places = _places_of(each)
                # Its owner may be any of them: a reference names it before a controller has labelled it.
                interested = self.users.values() if not places else [self.users.get(place, set()) for place in places]
                woken.update(*interested)
                for place in places:
                    if each is after:
                        self.of_clusters[place][name] = each
                    elif (members := self.of_clusters.get(place)) is not None:
                        members.pop(name, None)
                        if not members:
                            del self.of_clusters[place]
            if after is not None:
                self.bodies[name] = after
        for user in woken:
            user.set()


def _places_of(body: Body) -> list[Place]:
    namespace = str(field_at(body, "metadata", "namespace") or "")
    return [(namespace, name) for name in _clusters_of(body)]


@dataclass(frozen=True)
class Listed:
    """The objects of one Cluster as listed once in its namespace."""

    bodies: Mapping[Resource, Sequence[Body]]
    name: str

    def objects(self, resource: Resource) -> Sequence[Body]:
        """Return the objects of a kind that belong to the Cluster."""
        return [each for each in self.bodies[resource] if self.name in _clusters_of(each)]

    def named(self, resource: Resource, name: str) -> Body | None:
        """Return the object of this name."""
        return next((each for each in self.bodies[resource] if field_at(each, "metadata", "name") == name), None)


@dataclass(frozen=True)
class ClusterView:
    """The objects of one Cluster as last seen by the shared watches."""

    watches: Mapping[Watched, SharedWatch[WatchedObjects]]
    changed: asyncio.Event
    namespace: str
    name: str

    def objects(self, resource: Resource) -> Sequence[Body]:
        """Return the objects of a kind that belong to the Cluster. Raises the error of a watch that has ended."""
        return list(self._state(resource).of_clusters.get((self.namespace, self.name), {}).values())

    def named(self, resource: Watched, name: str) -> Body | None:
        """Return the object of this name in the Cluster's namespace. Raises as `objects`."""
        return self._state(resource).bodies.get(f"{self.namespace}/{name}")

    def _state(self, watched: Watched) -> WatchedObjects:
        watch = self.watches[watched]
        if watch.error is not None:
            raise watch.error
        return watch.state

    def beside(self, *, namespace: str, name: str) -> ClusterView:
        """Return the view of another Cluster, by the same watches, of a view that awaits the changes of every Cluster."""
        return replace(self, namespace=namespace, name=name)

    async def change(self, *, within_s: float) -> bool:
        """Return True after a change of an object of the Cluster, or of one without an owner; False if there is none in time."""
        return await is_set(self.changed, within_s=within_s)


class ClusterWatches(SharedWatches[WatchedObjects]):
    """The watches of all management clusters."""

    @asynccontextmanager
    async def viewing(
        self, vim: VimConnection, endpoint: str, resources: Sequence[Watched], *, namespace: str, name: str
    ) -> AsyncIterator[ClusterView]:
        """Yield the view of one Cluster, which is complete at once; ``endpoint``: of the management cluster.

        With neither namespace nor name, it awaits the changes of every Cluster.
        """
        changed, place = asyncio.Event(), (namespace, name)
        mine = {
            each: self.join((endpoint, each), vim, changed, WatchedObjects(), _following(each)) for each in resources
        }
        for watch in mine.values():
            watch.state.users[place].add(changed)
        try:
            for watch in mine.values():
                await watch.has_listed.wait()
            yield ClusterView(mine, changed, namespace=namespace, name=name)
        finally:
            for resource, watch in mine.items():
                watch.state.users[place].discard(changed)
                if not watch.state.users[place]:
                    del watch.state.users[place]
                self.leave((endpoint, resource), watch, changed, linger_s=_LINGER_S)


def _following(watched: Watched) -> Callable[[Cluster, SharedWatch[WatchedObjects]], Awaitable[None]]:
    async def follow(cluster: Cluster, watch: SharedWatch[WatchedObjects]) -> None:
        async with aclosing(_changes(cluster, watched)) as following:
            async for seen in following:
                watch.state.update(seen)
                watch.has_listed.set()

    return follow


def _changes(cluster: Cluster, watched: Watched) -> AsyncGenerator[Seen[Body], None]:
    if isinstance(watched, MetadataOf):
        return cluster.follow_metadata(watched.resource, _identity, labels=watched.label)
    return cluster.follow(watched)


def _identity(body: Body) -> Body:
    metadata = field_at(body, "metadata") or {}
    return {"metadata": {name: metadata[name] for name in _IDENTITY if name in metadata}}
