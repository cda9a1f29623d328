"""The watches of all regions: one for each kind that instances have there, as long as this process leads (multicloud.md MC-108)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said

from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.inventory.feature_watch import FeatureWatch
from kubevnfm_infra_k8s.domain.inventory.kind_watch import KindWatch, Watching
from kubevnfm_infra_k8s.domain.inventory.ports import (
    Exporting,
    FeatureRecords,
    Instances,
    InventoryRecords,
    Kind,
    Leadership,
    LeaseLost,
    Noticing,
    Stale,
    Term,
    Watched,
    WatchedRegions,
)
from kubevnfm_infra_k8s.domain.inventory.starts import Starts
from kubevnfm_infra_k8s.domain.ports import Clusters

log = structlog.get_logger()

_RETRY_S: Final = 1.0
_LOOKS_BETWEEN: Final = 60
"""Times of one look from one search for regions without instances to the next."""
_AGAIN_S: Final = 60.0
"""After a fault of ours."""
_SILENT_S: Final = 1000.0
"""A watch begins again after 300 s without news, and one that hangs is ended after 330 s; the second of those makes a list."""
_MOST_WATCHES: Final = 400
"""Watches of a region, each of which has a connection of its own."""
_SILENT: Final = "no event, bookmark or new begin of the watch was seen"
_ALWAYS: Final = frozenset({("v1", "Pod")})
_MACHINES: Final = ("kubevirt.io/v1", "VirtualMachineInstance")
"""Made of what a VNF brings of its group, as pods are."""

Scope = tuple[Kind, str]
"""A kind, and the namespace in which it is watched; "" for all of them."""


@dataclass
class RegionWatch:
    """The watches of one region, and whether they work."""

    watching: Watching
    region: Watched
    mark: Callable[[Mapping[Kind, Stale]], Awaitable[None]]
    """Stores which kinds cannot be watched."""
    most: int = _MOST_WATCHES
    """Watches at the same time."""
    registered_s: float = 30.0
    """From one look at the registration of the VIM to the next."""
    silent_s: float = _SILENT_S
    features: FeatureWatch | None = None
    """The watches over what its nodes have, which begin once the objects are known."""
    _on_features: Sequence[asyncio.Task[None]] = ()
    _tasks: dict[Scope, asyncio.Task[None]] = field(default_factory=dict)
    _watches: dict[Scope, KindWatch] = field(default_factory=dict)
    _states: dict[Scope, Stale | None] = field(default_factory=dict)
    """None: all objects are known."""
    _narrow: set[Kind] = field(default_factory=set)
    """The kinds that the credentials may watch in single namespaces only."""
    left: frozenset[str] = frozenset()
    """The namespaces without a release and without an object at the last search."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _helpers: Sequence[asyncio.Task[None]] = ()

    def watch(self, region: Watched) -> None:
        """Watch what releases have and is not watched yet."""
        self.region = region
        if not self._helpers:
            self._helpers = [
                asyncio.create_task(self._mark(), name=f"inventory-state {region.vim_id}"),
                asyncio.create_task(self._follow_registration(), name=f"inventory-registration {region.vim_id}"),
            ]
        wanted = {
            (kind, namespace)
            for kind in kinds_of(region.kinds)
            for namespace in (region.namespaces if kind in self._narrow else ("",))
        }
        scopes = sorted(wanted - self._tasks.keys(), key=lambda scope: (scope[0] not in _ALWAYS, scope))
        free = max(0, self.most - len(self._tasks))
        for scope in scopes[:free]:
            self._tasks[scope] = asyncio.create_task(self._run(scope), name=f"inventory {region.vim_id} {scope}")
        if unwatched := [scope for scope in scopes[free:] if scope not in self._states]:
            log.warning("too_many_kinds_to_watch", vim_id=region.vim_id, watches=len(unwatched))
            now = rfc3339(self.watching.clock.now())
            reason = f"not watched: the region has more than {self.most} kinds, or kinds in namespaces, to watch"
            self._states.update(dict.fromkeys(unwatched, Stale(now, reason)))
            self._changed.set()

    @property
    def is_crowded(self) -> bool:
        """Whether namespaces that come and go could use up the watches."""
        return bool(self._narrow) and len(self._tasks) >= self.most // 2

    async def trim(self, region: Watched) -> None:
        """End the watches of namespaces that the region does not have any more."""
        self.region = region
        ended = {
            scope for scope in self._states.keys() | self._tasks.keys() if scope[1] not in {"", *region.namespaces}
        }
        await _ended([self._tasks.pop(scope) for scope in ended & self._tasks.keys()])
        for scope in ended:
            self._watches.pop(scope, None)
            self._states.pop(scope, None)
        log.info("inventory_namespaces_left", vim_id=region.vim_id, watches=len(ended))
        self._changed.set()

    async def end(self) -> None:
        """End the watches."""
        await _ended(self._helpers)
        await self._end_watches()

    async def _end_watches(self) -> None:
        tasks_on_features, self._on_features = self._on_features, ()
        await _ended(tasks_on_features)
        # One that ends may begin others.
        while self._tasks:
            tasks, self._tasks = self._tasks, {}
            await _ended(tasks.values())

    async def _follow_registration(self) -> None:
        """Begin again with another cluster or other credentials: a watch that works would stay with the earlier ones."""
        while True:
            await asyncio.sleep(self.registered_s)
            self._judge_silence()
            try:
                now = await self.watching.vims.connection(VimConnection(vim_id=self.region.vim_id))
            except VnfmError:  # the watches report it when they need it
                continue
            if all(each.followed in (None, now) for each in self._watches.values()):
                continue
            log.info("inventory_region_registered_again", vim_id=self.region.vim_id)
            await self._end_watches()
            self._watches.clear()
            self._states.clear()
            self._narrow.clear()
            self.watch(self.region)

    def _judge_silence(self) -> None:
        """Have watches be stale of which nothing was heard for long, although none of their calls has failed."""
        now = asyncio.get_running_loop().time()
        for scope, watch in self._watches.items():
            silent_s, state = now - watch.heard_at, self._states.get(scope)
            if scope in self._states and state is None and silent_s > self.silent_s:
                since = rfc3339(self.watching.clock.now() - timedelta(seconds=silent_s))
                self._states[scope] = Stale(since, _SILENT)
                self._changed.set()
            elif state is not None and state.reason == _SILENT and silent_s <= self.silent_s:
                self._states[scope] = None
                self._changed.set()

    async def _run(self, scope: Scope) -> None:
        (api_version, kind), namespace = scope

        def report(error: Exception | None) -> None:
            if error is None:
                self._states[scope] = None
            elif not self._states.get(scope):
                reason = str(error) if isinstance(error, VnfmError) else f"unexpected error: {type(error).__name__}"
                self._states[scope] = Stale(rfc3339(self.watching.clock.now()), reason)
            self._changed.set()

        region = self.region
        while True:
            watch = KindWatch(self.watching, region.vim_id, region.cluster, api_version, kind, namespace, report)
            self._watches[scope] = watch
            try:
                await watch.run()
            except LeaseLost:
                return
            except Forbidden as error:
                log.info("inventory_narrowed", vim_id=region.vim_id, kind=kind, reason=str(error))
                self._narrow.add((api_version, kind))
                for each in (self._tasks, self._watches, self._states):
                    each.pop(scope, None)
                self.watch(self.region)
                self._changed.set()
                return
            except Exception as error:  # a fault of ours with one kind must not stop the others, and must be seen
                log.exception("inventory_watch_failed", vim_id=region.vim_id, kind=kind)
                report(error)
            await asyncio.sleep(_AGAIN_S)

    async def _mark(self) -> None:
        marked: Mapping[Kind, Stale] | None = None
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not self._tasks.keys() <= self._states.keys():
                continue
            # Now: the objects of other regions are not to wait for the nodes of this one.
            if self.features is not None and not self._on_features:
                self._on_features = [asyncio.create_task(self.features.run(), name=f"features {self.region.vim_id}")]
            found = [(kind, stale) for (kind, _), stale in self._states.items() if stale is not None]
            stale = dict(sorted(found, key=lambda each: each[1].since, reverse=True))
            if stale == marked:
                continue
            try:
                await self.mark(stale)
            except VnfmError as error:
                unless_said(error).warning("inventory_state_not_stored", vim_id=self.region.vim_id, reason=str(error))
                await asyncio.sleep(_RETRY_S)
                self._changed.set()
            else:
                marked = stale


@dataclass(frozen=True)
class InventoryWatcher:
    """Watches whenever this process is the leader."""

    records: InventoryRecords
    regions: WatchedRegions
    instances: Instances
    vims: VimDirectory
    clusters: Clusters
    clock: Clock
    leadership: Leadership
    outputs: Noticing
    features: FeatureRecords
    export: Exporting | None = None
    look_s: float = 1.0
    """From one look for regions and kinds that are new to the next, unless writes are seen."""
    registered_s: float = 30.0
    """From one look at the registration of a region to the next."""
    most: int = _MOST_WATCHES
    """Watches of a region at the same time."""
    starts: Starts = field(default_factory=Starts)

    async def run(self) -> None:
        """Work until cancelled."""
        await self.leadership.lead(self._lead)

    async def _lead(self, term: Term) -> None:
        # The first, so that no change that the watches see is missed.
        async with self.outputs.running():
            tasks = [asyncio.create_task(self._watch(term), name="inventory-regions")]
            if self.export is not None:
                tasks.append(asyncio.create_task(self.export.run(term), name="inventory-export"))
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    await task
            finally:
                await _ended(tasks)

    async def _watch(self, term: Term) -> None:
        running: dict[str, RegionWatch] = {}
        try:
            # If this process loses the lease before the last one, the next process continues with those that are left.
            await self._start(sorted(await self.regions.all(), key=_order_of_start), running, term)
            loop, is_read = asyncio.get_running_loop(), True
            search_at = loop.time() + self.look_s * _LOOKS_BETWEEN
            unused: dict[str, int] = {}
            while True:
                if is_read:
                    await self.regions.await_news(look_s=self.look_s, longest_s=search_at - loop.time())
                else:
                    await asyncio.sleep(self.look_s)
                is_read = False
                try:
                    for region in await self.regions.news():
                        # Watched first: news that is cleared and then lost comes no more.
                        await self._start([region], running, term)
                        await self.regions.clear_news(region)
                    if loop.time() >= search_at:
                        search_at = loop.time() + self.look_s * _LOOKS_BETWEEN
                        unused = await self._without_unused(running, unused, term)
                    is_read = True
                except VnfmError as error:
                    unless_said(error).warning("inventory_regions_not_read", reason=str(error))
        finally:
            await asyncio.gather(*(each.end() for each in running.values()))

    async def _start(self, regions: Iterable[Watched], running: dict[str, RegionWatch], term: Term) -> None:
        for region in regions:
            if region.vim_id not in running:
                watching = Watching(
                    self.records, self.instances, self.vims, self.clusters, self.clock, term, self.outputs, self.starts
                )

                async def mark(stale: Mapping[Kind, Stale], vim_id: str = region.vim_id) -> None:
                    await self.regions.mark(vim_id, term.number, stale)

                running[region.vim_id] = RegionWatch(
                    watching,
                    region,
                    mark,
                    self.most,
                    registered_s=self.registered_s,
                    features=FeatureWatch(
                        self.features, self.vims, self.clusters, self.clock, term, region.vim_id, starts=self.starts
                    ),
                )
            running[region.vim_id].watch(region)
            # Hundreds of regions begin thousands of tasks.
            await asyncio.sleep(0)

    async def _without_unused(
        self, running: dict[str, RegionWatch], before: dict[str, int], term: Term
    ) -> dict[str, int]:
        """End the watches of regions in which no instance has objects now and at the last look; return those of now."""
        unused: dict[str, int] = {}
        for region in await self.regions.all():
            if await self.regions.is_used(region):
                await self._start([await self._trimmed(running.get(region.vim_id), region)], running, term)
            # A release renews its region before it is stored.
            elif before.get(region.vim_id) != region.revision:
                unused[region.vim_id] = region.revision
            else:
                if (watched := running.pop(region.vim_id, None)) is not None:
                    await watched.end()
                # First: no process looks for the records of a region that is gone. A region that has changed is news.
                await self._forget(region.vim_id)
                await self.features.forget(region.vim_id)
                await self.regions.remove(region)
        return unused

    async def _trimmed(self, watched: RegionWatch | None, region: Watched) -> Watched:
        """Return a region without the namespaces in which no release has had objects now and at the last look, if it needs the watches."""
        # Also once after such a search: a release that gets a namespace while that is given up has it back then.
        if watched is None or not (watched.is_crowded or watched.left):
            return region
        used = await self.regions.used_namespaces(region)
        # The release of an instance goes before the last of its pods has ended.
        left = frozenset(
            [
                each
                for each in region.namespaces - used
                if not await self.records.page({"vim_id": region.vim_id, "namespace": each}, limit=1, after=None)
            ]
        )
        before, watched.left = watched.left, left
        namespaces = (region.namespaces | used) - (left & before)
        if namespaces == region.namespaces:
            return region
        trimmed = await self.regions.keep_namespaces(region, namespaces)
        if trimmed is None:
            return region
        await watched.trim(trimmed)
        return trimmed

    async def _forget(self, vim_id: str) -> None:
        """Remove what is left of a region, as of one that has not answered since its last instance was removed."""
        while page := await self.records.page({"vim_id": vim_id}, limit=100, after=None):
            for record in page:
                await self.records.remove(record)


def _order_of_start(region: Watched) -> tuple[int, bool, str]:
    """Order regions that were never listed, or by the earliest leader, first; of one leader, those that it could not watch last."""
    return region.term, region.is_stale, region.since


async def _ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def kinds_of(recorded: Iterable[Kind]) -> frozenset[Kind]:
    """Return the kinds to watch, for those of releases."""
    kinds = frozenset(recorded) | _ALWAYS
    group = _MACHINES[0].partition("/")[0]
    has_machines = any(version.partition("/")[0] == group for version, _ in kinds)
    return kinds | {_MACHINES} if has_machines else kinds
