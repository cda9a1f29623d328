"""The watch over one kind in one region, and the writing of what it sees (multicloud.md MC-108, MC-112).

Changes wait by the name of their object until they are written: a slow database holds up no watch, and of several changes of one
object the last one is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import starmap
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.errors import Forbidden, UnknownKinds
from kubevnfm_infra_k8s.domain.inventory.ports import Instances, InventoryRecords, Noticing, Term
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord, Place, record_id, scope_of
from kubevnfm_infra_k8s.domain.inventory.seen_object import SeenObject, is_placed, parts_of
from kubevnfm_infra_k8s.domain.inventory.starts import Starts
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Resource, group_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, Seen

log = structlog.get_logger()

_PAUSES: Final = BackOff(first_s=1.0, longest_s=60.0)
_PAGE: Final = 500
_BATCH: Final = 64
"""Objects that are written side by side."""
_LOST_WRITES: Final = 20
_RETRY_S: Final = 1.0
_BEAT_S: Final = 0.1
"""Changes are written at multiples of it, by all watches at the same time: a bring-up changes objects of many kinds within
moments, each some times, which costs one transaction then, and one read of its release."""
_WATCHED: Final = frozenset({"list", "watch"})
_ANOTHER: Final = -1
"""The hash of a record that shows another state than was seen; no object has it."""
_UNKNOWN: Final = (_ANOTHER, 0)


@dataclass(frozen=True)
class Watching:
    """The ports that all watches of this process use."""

    records: InventoryRecords
    instances: Instances
    vims: VimDirectory
    clusters: Clusters
    clock: Clock
    term: Term
    outputs: Noticing
    starts: Starts = field(default_factory=Starts)


@dataclass
class KindWatch:
    """One kind in one region."""

    watching: Watching
    vim_id: str
    cluster: str
    """The endpoint, as releases have it."""
    api_version: str
    kind: str
    namespace: str
    """Where it watches; "" for everywhere."""
    report: Callable[[VnfmError | None], None]
    """Called with None when all objects are known, and with the error when the region cannot be watched."""
    unserved_s: float = 30.0
    """From one look whether the region serves the kind to the next."""
    heard_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """When it last began, or heard of the region, in the time of the loop."""
    followed: VimConnection | None = None
    """The registration of the VIM that is in use."""
    _pending: dict[str, SeenObject | None] = field(default_factory=dict)
    """Objects to be written, by the name that the watch gives them; None: it is gone."""
    _writing: Mapping[str, SeenObject | None] = field(default_factory=dict)
    """Those that are being written."""
    _known: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The hash of what the record shows, and its revision, by the same name: most events change nothing that is kept, what has no
    record yet needs none to be read, nor does one to be removed about which no event says anything. Revision 0: not stored."""
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _written: Callable[[], None] | None = None
    """Called once nothing is pending: the turn of a list lasts until its records are written."""

    async def run(self) -> None:
        """Watch and write until cancelled. Raises LeaseLost; Forbidden if it may not watch all namespaces."""
        both = [
            asyncio.create_task(self._watch(), name=f"inventory {self.vim_id} {self.kind}"),
            asyncio.create_task(self._write(), name=f"inventory-writes {self.vim_id} {self.kind}"),
        ]
        try:
            ended, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                await task
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _watch(self) -> None:
        failures, unserved, is_namespaced = 0, 0, False
        while True:
            self.heard_at = asyncio.get_running_loop().time()
            try:
                async with self.watching.starts.turn(self.vim_id) as listed, self._cluster() as cluster:
                    resource = await cluster.resource(self.api_version, self.kind)
                    if resource is None or not resource.verbs >= _WATCHED:
                        unserved += 1
                        listed()
                        await self._not_served(unserved)
                        continue
                    unserved = 0
                    is_namespaced = resource.namespaced
                    async with aclosing(self._following(cluster, resource)) as following:
                        async for seen in following:
                            failures, self.heard_at = 0, asyncio.get_running_loop().time()
                            if seen.is_all and not seen.found and not await self._is_served(cluster):
                                break
                            await self._take_in(seen)
                            if seen.is_all:
                                self._end_once_written(listed)
            except VnfmError as error:
                if isinstance(error, Forbidden) and is_namespaced and not self.namespace:
                    raise
                self.report(error)
                failures += 1
                unless_said(error).info("inventory_stale", vim_id=self.vim_id, kind=self.kind, reason=str(error))
            await asyncio.sleep(_PAUSES.after(failures))

    @asynccontextmanager
    async def _cluster(self) -> AsyncIterator[Cluster]:
        vim = self.followed = await self.watching.vims.connection(VimConnection(vim_id=self.vim_id))
        async with self.watching.clusters.cluster(vim) as cluster:
            yield cluster

    def _end_once_written(self, end_turn: Callable[[], None]) -> None:
        """End the turn of a list once its records are written: now, if all of them show what was found."""
        if self._pending or self._writing:
            self._written = end_turn
        else:
            end_turn()

    async def _is_served(self, cluster: Cluster) -> bool:
        # An answer that the kind does not exist looks like an empty list, and has the cluster read its kinds again.
        return await cluster.resource(self.api_version, self.kind) is not None

    async def _not_served(self, looks: int) -> None:
        """Have the objects of a kind gone with it, at the second look: a server that starts serves custom kinds a moment later."""
        if looks == 1:
            self.report(UnknownKinds([f"{self.kind} in {self.api_version}"]))
        else:
            await self._listed({})
            self.report(None)
        await asyncio.sleep(self.unserved_s)

    def _following(self, cluster: Cluster, resource: Resource) -> AsyncGenerator[Seen[SeenObject], None]:
        keep, parts = self._keep(resource), parts_of(self.api_version, self.kind)
        if parts:
            return cluster.follow_kept(resource, keep, parts, namespace=self.namespace, labels=INSTANCE_LABEL)
        # Nothing but metadata is asked of other kinds, so no content of a Secret is read.
        return cluster.follow_metadata(resource, keep, namespace=self.namespace, labels=INSTANCE_LABEL)

    @staticmethod
    def _keep(resource: Resource) -> Callable[[Mapping[str, object]], SeenObject]:
        return lambda body: SeenObject.from_body(body, resource)

    async def _take_in(self, seen: Seen[SeenObject]) -> None:
        if seen.is_all:
            self.watching.outputs.notice_list(self.vim_id, group_of(self.api_version), self.kind)
            await self._listed(seen.found)
            self.report(None)
            return
        for name, found in seen.found.items():
            self._notice(name)
            self._put(name, found)
        for name in seen.gone:
            self._notice(name)
            self._put(name, None)

    def _notice(self, name: str) -> None:
        """Report a change, also one of what is not kept here."""
        namespace, _, own = name.rpartition("/")
        identity = group_of(self.api_version), self.kind, namespace or self.namespace, own
        self.watching.outputs.notice(self.vim_id, identity)

    def _put(self, name: str, found: SeenObject | None) -> None:
        # A state that is being written is not known yet, and may be older than this.
        is_open = name in self._pending or name in self._writing
        if is_open or found is None or self._known.get(name, _UNKNOWN)[0] != hash(found):
            self._pending[name] = found
            self._woken.set()

    async def _listed(self, found: Mapping[str, SeenObject]) -> None:
        """Compare all objects with the records: those alone have what has vanished while no process watched."""
        missing = set(found)
        after: str | None = None
        while page := await self._page(after):
            after = page[-1].id
            for record in page:
                name = record.name if self.namespace or not record.namespace else f"{record.namespace}/{record.name}"
                seen = found.get(name)
                missing.discard(name)
                if seen is not None and record.shows(seen) and name not in self._writing:
                    self._known[name] = hash(seen), record.revision
                    self._pending.pop(name, None)
                else:
                    self._known[name] = _ANOTHER, record.revision
                    self._pending[name] = seen
            self._woken.set()
        for number, name in enumerate(missing):
            self._put(name, found[name])
            if number % _PAGE == 0:
                await asyncio.sleep(0)

    async def _page(self, after: str | None) -> Sequence[ObjectRecord]:
        mine = {"scope": scope_of(self.vim_id, self.api_version, self.kind)}
        if self.namespace:
            mine["namespace"] = self.namespace
        return await self.watching.records.page(mine, limit=_PAGE, after=after)

    async def _write(self) -> None:
        while True:
            await self._woken.wait()
            await asyncio.sleep(_BEAT_S - asyncio.get_running_loop().time() % _BEAT_S)
            self._woken.clear()
            is_full = True
            while self._pending and is_full:
                names = [name for name, _ in zip(self._pending, range(_BATCH), strict=False)]
                async with self.watching.starts.writing:
                    batch = self._writing = {name: self._pending.pop(name) for name in names if name in self._pending}
                    failed = await self._write_batch(batch)
                if failed:
                    log.warning("inventory_not_written", vim_id=self.vim_id, kind=self.kind, reason=str(failed[0]))
                    # Later changes are newer; to write again what was written changes nothing.
                    self._pending = {**batch, **self._pending}
                    await asyncio.sleep(_RETRY_S)
                self._writing = {}
                # Changes that have come meanwhile wait for the next beat: a pod that starts changes some times within moments.
                is_full = len(batch) == _BATCH
            if self._pending:
                self._woken.set()
            elif self._written is not None:
                self._written()
                self._written = None

    async def _write_batch(self, batch: Mapping[str, SeenObject | None]) -> Sequence[VnfmError]:
        """Write objects side by side, as a database writes many documents in the time of one; return why some were not written."""
        if len(batch) == 1:
            # Mostly: a task costs as much as the write.
            try:
                await self._write_one(*next(iter(batch.items())))
            except VnfmError as error:
                return [error]
            return []
        results = await asyncio.gather(*starmap(self._write_one, batch.items()), return_exceptions=True)
        failed: list[VnfmError] = []
        for result in results:
            if isinstance(result, VnfmError):
                failed.append(result)
            elif result is not None:
                raise result
        return failed

    async def _write_one(self, name: str, seen: SeenObject | None) -> None:
        namespace, _, own = name.rpartition("/")
        key = record_id(self.vim_id, group_of(self.api_version), self.kind, namespace or self.namespace, own)
        records = self.watching.records
        _, known_revision = known = self._known.get(name, _UNKNOWN)
        # No event says that such an object is gone.
        is_silent = seen is None and known_revision > 0 and not is_placed(self.api_version, self.kind)
        for lost in range(_LOST_WRITES):
            self.watching.term.check()
            revision = 0
            try:
                if is_silent and not lost and await records.remove_unread(key, known_revision):
                    self._known.pop(name, None)
                    return
                is_new = seen is not None and known is _UNKNOWN and not lost
                old = None if is_new else await records.get(key)
                new = await self._record(seen, old) if seen is not None else None
                if new is not None and new.id != key:
                    # A name or namespace that no API server accepts, or not what was asked for: it could not be found again.
                    new = None
                self.watching.term.check()
                if new is None and old is not None:
                    await records.remove(old)
                elif new is not None and (old is None or not new.is_as(old)):
                    revision = await records.write(old, new)
                elif old is not None:
                    revision = old.revision
            except RevisionConflict:
                continue
            if seen is None:
                self._known.pop(name, None)
            else:
                self._known[name] = hash(seen), revision
            return
        raise RevisionConflict(f"{self.kind} {name}: its record is written by others all the time")

    async def _record(self, seen: SeenObject, old: ObjectRecord | None) -> ObjectRecord | None:
        """Return the record of an object; None if it is of no instance that has objects here."""
        facts = await self.watching.instances.facts(seen, self.vim_id, self.cluster)
        if facts is not None:
            place = facts.place_of(seen) or Place()
        # The release of an instance goes before the last of its pods has ended.
        elif old is not None and old.vnf_instance_id == seen.vnf_instance_id:
            place = old.place
        else:
            return None
        return ObjectRecord.from_seen(self.vim_id, seen, place, now=rfc3339(self.watching.clock.now()))
