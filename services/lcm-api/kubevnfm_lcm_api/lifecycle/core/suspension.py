"""Suspensions for maintenance (multicloud.md MC-139): of a VNF instance, and of the cloud region that it is in.

That of an instance is in its metadata, where filters find it. An operation claims the instance at the revision at which it has
seen none, so an operation and a suspension that come at the same time exclude one another. Those of regions are asked for
before each operation: one that is accepted at the same time runs to its end, as those before it do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from cachetools import TTLCache
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.races import repeat_lost_writes
from kubevnfm_worker.outbox import Outbox
from pydantic import ValidationError

from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

KEY: Final = "kubevnfm_suspended"
"""The key in the instance's metadata; requests cannot set it."""
_SHOWN_S: Final = 5.0
"""How old the suspensions of regions may be that are only shown."""


class SuspendedRegions(Protocol):
    """The part of `kubevnfm_clients.multicloud.regions.CloudRegions` that is asked here."""

    async def suspensions(self) -> Mapping[str, Suspension]:
        """Return the suspensions of all regions, by the id of the VIM. Raises OutsideUnavailable."""
        ...


def suspension_of(metadata: Mapping[str, Any]) -> Suspension | None:
    """Return the suspension that an instance's metadata show; None if there is none."""
    try:
        return Suspension.model_validate(metadata[KEY])
    # Version 0.1.0 let requests set any key.
    except (KeyError, ValidationError):
        return None


class RegionSuspensions:
    """The suspensions of regions, by the id of the VIM."""

    def __init__(self, regions: SuspendedRegions) -> None:
        self._regions = regions
        self._last: Mapping[str, Suspension] | None = None
        self._shown: TTLCache[str, Mapping[str, Suspension]] = TTLCache(1, ttl=_SHOWN_S)

    async def all(self) -> Mapping[str, Suspension]:
        """Return them. Raises OutsideUnavailable if they were never read.

        While vim-registry does not answer, no region is suspended or resumed, so the last ones hold.
        """
        try:
            self._last = await self._regions.suspensions()
        except OutsideUnavailable:
            if self._last is None:
                raise
        return self._last

    async def shown(self) -> Mapping[str, Suspension]:
        """Return them as some seconds ago, for what is only shown; empty if they were never read."""
        if KEY not in self._shown:
            try:
                self._shown[KEY] = await self.all()
            except OutsideUnavailable:
                return {}
        return self._shown.get(KEY, {})


class Suspensions:
    """Suspends and resumes instances, and refuses what would change something meanwhile."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        engine: Engine,
        regions: RegionSuspensions,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._engine = store, outbox, engine
        self._regions, self._ring, self._clock = regions, ring, clock

    async def get(self, instance_id: str) -> Suspension:
        """Return the suspension of an instance or else of its region. Raises NotFound."""
        record = await self._instance(instance_id)
        suspension = await self.shown(record.vnf.metadata, record.internals.vim_ids)
        if suspension is None:
            raise NotFound(f"VNF instance {instance_id} is not suspended")
        return suspension

    @repeat_lost_writes
    async def suspend(self, instance_id: str, reason: str, *, by: str) -> Suspension:
        """Suspend a CNF, or give another reason. Raises NotFound, OperationRunning, Conflict (another kind of VNF)."""
        stored = await self._store.get(instances.COLLECTION, instance_id)
        if stored is None:
            raise _missing(instance_id)
        record = InstanceRecord.from_document(stored.body)
        await self._engine.check_free(record, InstantiationState.INSTANTIATED)
        if record.release is None or record.internals.workload is not None:
            raise Conflict("only VNF instances of containers can be suspended")
        before = suspension_of(record.vnf.metadata)
        since = before.since if before is not None else rfc3339(self._clock.now())
        suspension = Suspension(by=by, since=since, reason=reason, scope="instance")
        await self._write(stored.revision, record, {**record.vnf.metadata, KEY: suspension.model_dump(mode="json")})
        return suspension

    @repeat_lost_writes
    async def resume(self, instance_id: str) -> None:
        """End the suspension of an instance. Raises NotFound if there is none."""
        stored = await self._store.get(instances.COLLECTION, instance_id)
        if stored is None:
            raise _missing(instance_id)
        record = InstanceRecord.from_document(stored.body)
        if suspension_of(record.vnf.metadata) is None:
            raise NotFound(f"VNF instance {instance_id} is not suspended by itself")
        left = {name: value for name, value in record.vnf.metadata.items() if name != KEY}
        await self._write(stored.revision, record, left)

    async def check(self, record: InstanceRecord, vim_ids: Iterable[str]) -> None:
        """Raise Suspended if the instance or one of the regions is suspended."""
        own = suspension_of(record.vnf.metadata)
        if own is not None:
            raise own.refusal(f"VNF instance {record.vnf.id}")
        places = tuple(vim_ids)
        found = await self._regions.all() if places else {}
        for vim_id in places:
            if vim_id in found:
                raise found[vim_id].refusal(f"the cloud region of VIM {vim_id}")

    async def check_instance(self, instance_id: str) -> None:
        """Raise Suspended for an instance whose remains or whose operation would be continued; a missing one is left to others."""
        stored = await self._store.get(instances.COLLECTION, instance_id)
        if stored is not None:
            record = InstanceRecord.from_document(stored.body)
            await self.check(record, record.internals.vim_ids)

    async def check_occurrence(self, occurrence_id: str) -> None:
        """Raise Suspended if the instance of an operation, or its region, is suspended."""
        stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
        if stored is not None:
            await self.check_instance(str(stored.body["vnfInstanceId"]))

    async def shown(self, metadata: Mapping[str, Any], vim_ids: Iterable[str]) -> Suspension | None:
        """Return the suspension that an instance shows: its own, or that of its region some seconds ago."""
        own = suspension_of(metadata)
        if own is not None:
            return own
        places = tuple(vim_ids)
        found = await self._regions.shown() if places else {}
        return next((found[vim_id] for vim_id in places if vim_id in found), None)

    async def _instance(self, instance_id: str) -> InstanceRecord:
        stored = await self._store.get(instances.COLLECTION, instance_id)
        if stored is None:
            raise _missing(instance_id)
        return InstanceRecord.from_document(stored.body)

    async def _write(self, revision: int, record: InstanceRecord, metadata: Mapping[str, Any]) -> None:
        changed = record.with_vnf(metadata=dict(metadata))
        changed = changed.model_copy(update={"updated_at": rfc3339(self._clock.now())})
        body = changed.document(self._ring)
        await self._outbox.replace(instances.COLLECTION, record.vnf.id, body, if_revision=revision, events=[])


def _missing(instance_id: str) -> NotFound:
    return NotFound(f"VNF instance {instance_id} does not exist")
