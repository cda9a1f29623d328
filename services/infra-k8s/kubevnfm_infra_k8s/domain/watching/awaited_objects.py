"""Waits with watches, not polls, for objects to become ready or to be deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.concurrency import is_set
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Resource, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster, Seen
from kubevnfm_infra_k8s.domain.reading.readiness import is_complete_job
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


@dataclass
class View:
    """The objects as last seen by the watches."""

    bodies: dict[ObjectKey, Body] = field(default_factory=dict)
    changed_at: dict[ObjectKey, float] = field(default_factory=dict)
    """Loop time of the last change of each object."""
    complete: set[ObjectKey] = field(default_factory=set)
    """The Jobs that were seen complete. They stay complete after they were collected."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: BaseException | None = None

    def update(self, keys: Mapping[str, ObjectKey], seen: Seen[Body]) -> None:
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
            if is_complete_job(body):
                self.complete.add(key)
        self._changed.set()

    def unchanged_s(self, key: ObjectKey) -> float:
        """Return the seconds since the object's last change."""
        now = asyncio.get_running_loop().time()
        return now - self.changed_at.get(key, now)

    def fail(self, error: BaseException) -> None:
        """Note that a watch has ended; `check` and `change` raise its error."""
        self._broken = error
        self._changed.set()

    def check(self) -> None:
        """Raise the error of a watch that has ended."""
        if self._broken is not None:
            raise self._broken

    async def change(self, *, within_s: float) -> bool:
        """Return True after the next change, False if there is none in time. Raises the error of an ended watch."""
        if not await is_set(self._changed, within_s=within_s):
            return False
        self.check()
        return True


@asynccontextmanager
async def viewing(cluster: Cluster, awaited: Sequence[Awaited], *, vnf_instance_id: str) -> AsyncIterator[View]:
    """Yield a view of the objects, which is complete at once and follows every change until the block ends.

    There is one watch for each kind and namespace, because an API server limits the requests of a client.
    """
    view = View()
    firsts: list[asyncio.Event] = []
    tasks: list[asyncio.Task[None]] = []
    for scope in _scopes(awaited):
        firsts.append(asyncio.Event())
        work = _follow(cluster, scope, view, firsts[-1], selector=f"{INSTANCE_LABEL}={vnf_instance_id}")
        tasks.append(asyncio.create_task(work, name=f"watch-{scope[0].key.kind}"))
    try:
        # Before its first list, a missing object could be one that was not read yet.
        for first in firsts:
            await first.wait()
        view.check()
        yield view
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(
    cluster: Cluster, scope: Sequence[Awaited], view: View, first: asyncio.Event, *, selector: str
) -> None:
    keys = {each.key.name: each.key for each in scope}
    resource, key = scope[0].resource, scope[0].key
    following = (
        cluster.follow(resource, namespace=key.namespace, name=key.name)
        if scope[0].is_shared
        else cluster.follow(resource, namespace=key.namespace, labels=selector)
    )
    try:
        async with aclosing(following):
            async for seen in following:
                view.update(keys, seen)
                first.set()
    except VnfmError as error:
        view.fail(error)
    finally:
        first.set()  # also after a failure, or viewing() would wait for ever


def _version(body: Body) -> object:
    return field_at(body, "metadata", "resourceVersion")


def _scopes(awaited: Iterable[Awaited]) -> Sequence[Sequence[Awaited]]:
    scopes: dict[tuple[str, str, str, str], list[Awaited]] = {}
    for each in awaited:
        alone = each.key.name if each.is_shared else ""
        scopes.setdefault((each.key.api_version, each.key.kind, each.key.namespace, alone), []).append(each)
    return list(scopes.values())


def soonest(verdicts: Iterable[Verdict]) -> float | None:
    """Return the seconds until the next verdict can change without a change of its object."""
    times = [each.again_in_s for each in verdicts if each.again_in_s is not None]
    return min(times) if times else None
