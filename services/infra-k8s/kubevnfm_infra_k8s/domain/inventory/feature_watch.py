"""The watches over what the nodes of one region have, of which each change is published (multicloud.md MC-119).

They are watches of the inventory: of regions in which instances have objects, in the process that leads. Each object is kept as a
digest alone; a caller that wants the features reads them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_clients.multicloud.region_views import FEATURE
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said

from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.inventory.ports import FeatureRecords, Kind, LeaseLost, Term
from kubevnfm_infra_k8s.domain.inventory.starts import Starts
from kubevnfm_infra_k8s.domain.objects import Body, Resource, field_at, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, Seen

log = structlog.get_logger()

_PAUSES: Final = BackOff(first_s=1.0, longest_s=60.0)
_UNSERVED_S: Final = 60.0
"""From one look at a kind that is not served, or may not be watched, to the next."""
_WATCHED: Final = frozenset({"list", "watch"})
_SPEC: Final = (("spec",),)
_KINDS: Final[Mapping[Kind, Sequence[Sequence[str]]]] = {
    ("v1", "Node"): (("status", "capacity"), ("status", "allocatable")),
    ("resource.k8s.io/v1", "ResourceSlice"): _SPEC,
    ("resource.k8s.io/v1", "DeviceClass"): _SPEC,
}
"""The paths that are read of each kind, beside its metadata."""


@dataclass
class FeatureWatch:
    """One region."""

    records: FeatureRecords
    vims: VimDirectory
    clusters: Clusters
    clock: Clock
    term: Term
    vim_id: str
    apart_s: float = 10.0
    """From one event to the next."""
    starts: Starts = field(default_factory=Starts)
    _found: dict[Kind, dict[str, str]] = field(default_factory=dict)
    """The digests of the objects of each kind that was listed, by name."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: dict[str, asyncio.Lock] = field(default_factory=dict)
    _looked_at: dict[str, float] = field(default_factory=dict)
    """When the kinds of the cluster were read because one of this group and version was not known."""

    async def run(self) -> None:
        """Watch and publish until cancelled, or the lease is lost."""
        tasks = [asyncio.create_task(self._watch(kind), name=f"features {self.vim_id} {kind[1]}") for kind in _KINDS]
        try:
            await self._publish()
        except LeaseLost:
            return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, kind: Kind) -> None:
        failures = 0
        while True:
            pause_s = _UNSERVED_S
            try:
                async with self.starts.turn(self.vim_id) as listed:
                    vim = await self.vims.connection(VimConnection(vim_id=self.vim_id))
                    async with self.clusters.cluster(vim) as cluster:
                        if not await self._follow(cluster, kind, listed):
                            self._take_in(kind, Seen({}, is_all=True))
                failures = 0
            except Forbidden as error:
                log.info("features_forbidden", vim_id=self.vim_id, kind=kind[1], reason=str(error))
                self._take_in(kind, Seen({}, is_all=True))
            except VnfmError as error:
                failures += 1
                pause_s = _PAUSES.after(failures)
                unless_said(error).info("features_stale", vim_id=self.vim_id, kind=kind[1], reason=str(error))
            except Exception:  # a fault of ours must not stop the other kinds, and must be seen
                log.exception("features_watch_failed", vim_id=self.vim_id, kind=kind[1])
            await asyncio.sleep(pause_s)

    async def _follow(self, cluster: Cluster, kind: Kind, listed: Callable[[], None]) -> bool:
        """Follow the objects of a kind; return whether it is served. ``listed`` is called once they are known."""
        resource = await self._served(cluster, kind)
        if resource is None or not resource.verbs >= _WATCHED:
            return False

        def keep(body: Body) -> str:
            return digest_of(kind, body)

        async with aclosing(cluster.follow_kept(resource, keep, _KINDS[kind])) as following:
            async for seen in following:
                self._take_in(kind, seen)
                listed()
        return True

    async def _served(self, cluster: Cluster, kind: Kind) -> Resource | None:
        """Return how a kind is served: kinds of one group that are looked for together are read once, as all of a cluster's take 10 ms."""
        version, loop = kind[0], asyncio.get_running_loop()
        async with self._looking.setdefault(version, asyncio.Lock()):
            if loop.time() - self._looked_at.get(version, -_UNSERVED_S) < _UNSERVED_S / 2:
                return cluster.known_resource(*kind)
            resource = await cluster.resource(*kind)
            if resource is None:
                self._looked_at[version] = loop.time()
            return resource

    def _take_in(self, kind: Kind, seen: Seen[str]) -> None:
        if seen.is_all:
            self._found[kind] = dict(seen.found)
        else:
            known = self._found.setdefault(kind, {})
            known.update(seen.found)
            for name in seen.gone:
                known.pop(name, None)
        self._changed.set()

    async def _publish(self) -> None:
        published, at = await self._last()
        while True:
            await self._changed.wait()
            self._changed.clear()
            # A kind that is not known yet has not vanished.
            if len(self._found) < len(_KINDS) or self._digest() == published:
                continue
            if at is not None:
                # Several changes of a moment are one event.
                await asyncio.sleep(max(0.0, self.apart_s - (self.clock.now() - at).total_seconds()))
            if (digest := self._digest()) == published:
                continue
            self.term.check()
            try:
                await self.records.found(self.vim_id, digest)
            except VnfmError as error:
                unless_said(error).warning("features_not_stored", vim_id=self.vim_id, reason=str(error))
                await asyncio.sleep(_PAUSES.first_s)
                self._changed.set()
            else:
                published, at = digest, self.clock.now()

    def _digest(self) -> str:
        return _digest({" ".join(kind): objects for kind, objects in self._found.items()})

    async def _last(self) -> tuple[str, datetime | None]:
        """Return what was published last, which another process may have done."""
        while True:
            try:
                return await self.records.last(self.vim_id)
            except VnfmError as error:
                unless_said(error).warning("features_not_read", vim_id=self.vim_id, reason=str(error))
                await asyncio.sleep(_PAUSES.first_s)


def digest_of(kind: Kind, body: Body) -> str:
    """Return a text that is another one when the features of an object are others."""
    labels = {name: value for name, value in labels_of(body).items() if name.startswith(FEATURE)}
    return _digest([labels, *(field_at(body, *path) for path in _KINDS[kind])])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
