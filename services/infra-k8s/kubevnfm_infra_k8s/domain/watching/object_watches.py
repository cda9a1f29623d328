"""Watches over the metadata of all objects that kubevnfm has applied, one for each kind and cluster, shared by all instances.

They continue between comparisons, so that a comparison costs a request only for what seems to differ. A watch keeps some 300
bytes of each object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_events import VimConnection

from kubevnfm_infra_k8s.domain.objects import MANAGED_BY, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster, Seen
from kubevnfm_infra_k8s.domain.watching.drift import Sighting
from kubevnfm_infra_k8s.domain.watching.shared_watches import SharedWatch, SharedWatches

Scope = tuple[Resource, str]
"""A kind, and the namespace in which it is watched; "" for all of them."""

_SELECTOR: Final = ",".join(f"{name}={value}" for name, value in MANAGED_BY.items())


@dataclass
class Sightings:
    """The objects of a scope as last seen, and when something of an instance has changed."""

    objects: dict[str, Sighting] = field(default_factory=dict)
    """By ``namespace/name``, or by name in the scope of one namespace."""
    changed_at: dict[str, int] = field(default_factory=dict)
    """By instance; "" for any, because several instances may hold a cluster-scoped object."""
    began: int = 0
    """When all objects were seen for the first time."""

    def update(self, seen: Seen[Sighting], *, at: int) -> None:
        """Take in what the watch has seen; only what `judge` looks at is a change."""
        if seen.is_all and not self.began:
            self.began = at
        gone = self.objects.keys() - seen.found.keys() if seen.is_all else set(seen.gone)
        for name in [*gone, *seen.found]:
            before, after = self.objects.get(name), seen.found.get(name)
            if before == after:
                continue
            for each in (before, after):
                if each is not None:
                    self.changed_at[each.instance] = at
            self.changed_at[""] = at
            if after is None:
                self.objects.pop(name, None)
            else:
                self.objects[name] = after

    def has_changed(self, instance: str, *, is_namespaced: bool, since: int) -> bool:
        """Return whether something of the instance has changed since, or may have."""
        return max(self.began, self.changed_at.get(instance if is_namespaced else "", 0)) > since


Watch = SharedWatch[Sightings]


class ObjectWatches(SharedWatches[Sightings]):
    """The watches of all clusters."""

    now: int = 0
    """The number of changes so far, as a time."""

    @asynccontextmanager
    async def viewing(
        self, vim: VimConnection, place: str, scopes: Collection[Scope], *, within_s: float, linger_s: float
    ) -> AsyncIterator[Mapping[Scope, Watch]]:
        """Yield the watches of the scopes that have listed, or ended with an error, within a time.

        ``place``: the cluster with the credentials; ``linger_s``: how long the watches go on without another call.
        """
        user = asyncio.Event()
        mine = {each: self.join((place, each), vim, user, Sightings(), self._following(each)) for each in scopes}
        try:
            await _listed(mine.values(), within_s=within_s)
            yield {scope: watch for scope, watch in mine.items() if watch.has_listed.is_set()}
        finally:
            for scope, watch in mine.items():
                self.leave((place, scope), watch, user, linger_s=linger_s)

    def _following(self, scope: Scope) -> Callable[[Cluster, Watch], Awaitable[None]]:
        resource, namespace = scope

        async def follow(cluster: Cluster, watch: Watch) -> None:
            following = cluster.follow_metadata(resource, Sighting.from_body, namespace=namespace, labels=_SELECTOR)
            async with aclosing(following):
                async for seen in following:
                    self.now += 1
                    watch.state.update(seen, at=self.now)
                    watch.wake()

        return follow


async def _listed(watches: Collection[Watch], *, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            for watch in watches:
                await watch.has_listed.wait()
    except TimeoutError:
        return
