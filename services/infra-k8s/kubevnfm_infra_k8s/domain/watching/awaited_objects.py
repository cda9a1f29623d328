"""Waits with watches, not polls, for objects to become ready or to be deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from kubevnfm_csar.waits import WantedResult, WantedValue
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.concurrency import is_set
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Resource, field_at
from kubevnfm_infra_k8s.domain.passing_objects import has_done_its_work
from kubevnfm_infra_k8s.domain.ports import Cluster, Seen
from kubevnfm_infra_k8s.domain.verdicts import Verdict


@dataclass(frozen=True)
class Awaited:
    """An object for which a step waits."""

    key: ObjectKey
    resource: Resource
    is_shared: bool = False
    """Whether it may carry another instance's label. Then it is watched by name."""
    uid: str = ""
    """"" if it is not known."""
    is_collected_at_end: bool = False
    """Whether Kubernetes deletes it after it has ended (a Job with ``ttlSecondsAfterFinished``)."""
    only_served: bool = False
    """Whether the wait for a definition ends once its kind is served."""
    wanted: WantedValue | WantedResult | None = None
    """The condition that the order of the package names, in the place of the rules of the object's kind."""
    only_exists: bool = False
    """Whether the wait ends once the object exists and is not being deleted."""
    until_ended: bool = False
    """Whether a pod must have ended well, and not only run."""


@dataclass
class _Scope:
    """The objects of one kind and namespace, which one watch follows."""

    awaited: Sequence[Awaited]
    has_listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Also set when the watch has ended, or `viewing` would wait for ever."""
    is_watched: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to begin the watch."""
    is_old: bool = False
    """Whether others were awaited since it was listed."""
    task: asyncio.Task[None] | None = None


@dataclass
class View:
    """The objects as last seen. Those that are awaited are watched: each watch uses a connection, which cannot serve again."""

    cluster: Cluster
    selector: str
    scopes: Sequence[_Scope]
    bodies: dict[ObjectKey, Body] = field(default_factory=dict)
    changed_at: dict[ObjectKey, float] = field(default_factory=dict)
    """Loop time of the last change of each object."""
    complete: set[ObjectKey] = field(default_factory=set)
    """The objects that were seen to have done their work. They stay complete after they were collected."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: VnfmError | None = None

    def unchanged_s(self, key: ObjectKey) -> float:
        """Return the seconds since the object's last change."""
        now = asyncio.get_running_loop().time()
        return now - self.changed_at.get(key, now)

    async def change(self, awaited: Collection[ObjectKey], *, within_s: float) -> bool:
        """Return True after the next change of an object that is watched, as those that are awaited are from now on.

        False if there is none in time. Raises the error of an ended watch.
        """
        for scope in self.scopes:
            if any(each.key in awaited for each in scope.awaited):
                scope.is_watched.set()
            scope.is_old = not scope.is_watched.is_set()
        if not await is_set(self._changed, within_s=within_s):
            return False
        self._check()
        return True

    async def refreshed(self) -> bool:
        """List again what was not watched while other objects were awaited; return whether there was something."""
        old = [scope for scope in self.scopes if scope.is_old]
        await self._end(old)
        await self._list(old)
        return bool(old)

    async def _list(self, scopes: Sequence[_Scope]) -> None:
        for scope in scopes:
            scope.has_listed.clear()
            scope.is_old = False
            scope.task = asyncio.create_task(self._follow(scope), name=f"watch-{scope.awaited[0].key.kind}")
        # Before its first list, a missing object could be one that was not read yet.
        for scope in scopes:
            await scope.has_listed.wait()
        self._check()

    @staticmethod
    async def _end(scopes: Sequence[_Scope]) -> None:
        tasks = [scope.task for scope in scopes if scope.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, scope: _Scope) -> None:
        keys = {each.key.name: each.key for each in scope.awaited}
        resource, key = scope.awaited[0].resource, scope.awaited[0].key
        following = (
            self.cluster.follow(resource, namespace=key.namespace, name=key.name)
            if scope.awaited[0].is_shared
            else self.cluster.follow(resource, namespace=key.namespace, labels=self.selector)
        )
        try:
            async with aclosing(following):
                async for seen in following:
                    self._update(keys, seen)
                    scope.has_listed.set()
                    await scope.is_watched.wait()
        except VnfmError as error:
            self._broken = error
            self._changed.set()
        finally:
            scope.has_listed.set()

    def _update(self, keys: Mapping[str, ObjectKey], seen: Seen[Body]) -> None:
        """Take in what one watch has seen; ``keys``: its objects by name."""
        now = asyncio.get_running_loop().time()
        for name in keys.keys() - seen.found.keys() if seen.is_all else keys.keys() & set(seen.gone):
            self.bodies.pop(keys[name], None)
        for name in keys.keys() & seen.found.keys():
            key, body = keys[name], seen.found[name]
            # A watch that begins again shows all objects, also those that have not changed.
            if key in self.bodies and _version(body) == _version(self.bodies[key]) is not None:
                continue
            self.bodies[key] = body
            self.changed_at[key] = now
            # Here, because the next version may be its deletion before anything else looks.
            if has_done_its_work(body):
                self.complete.add(key)
        self._changed.set()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken


@asynccontextmanager
async def viewing(cluster: Cluster, awaited: Sequence[Awaited], *, vnf_instance_id: str) -> AsyncIterator[View]:
    """Yield a view of the objects, which is complete at once and shows changes until the block ends.

    There is one watch for each kind and namespace, because an API server limits the requests of a client.
    """
    view = View(cluster, f"{INSTANCE_LABEL}={vnf_instance_id}", _scopes(awaited))
    try:
        await view._list(view.scopes)
        yield view
    finally:
        await view._end(view.scopes)


def _version(body: Body) -> object:
    return field_at(body, "metadata", "resourceVersion")


def _scopes(awaited: Iterable[Awaited]) -> Sequence[_Scope]:
    scopes: dict[tuple[str, str, str, str], list[Awaited]] = {}
    for each in awaited:
        alone = each.key.name if each.is_shared else ""
        scopes.setdefault((each.key.api_version, each.key.kind, each.key.namespace, alone), []).append(each)
    return [_Scope(each) for each in scopes.values()]


def soonest(verdicts: Iterable[Verdict]) -> float | None:
    """Return the seconds until the next verdict can change without a change of its object."""
    times = [each.again_in_s for each in verdicts if each.again_in_s is not None]
    return min(times) if times else None
