"""Brings group operations to their end (multicloud.md MC-140): one process each, by a lease in its document.

Each pass reads the document, looks at what runs, writes what has ended, and starts what may start: a region is RUNNING in the document
before its VNF is accepted. Another process, after a crash, finds in the document and in the instances how far that was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, lease_left_s
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.request_ids import caused_by
from kubevnfm_kit.run import look_when_due
from kubevnfm_kit.traces import read_traceparent, traced_by
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import InstantiationState, OperationState, OperationType
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Query, Sort, Stored, by
from kubevnfm_worker.leases import lease_end

from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.requests import instantiate
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud import vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.group_checks import body_for
from kubevnfm_lcm_api.multicloud.group_record import COLLECTION, LARGE, GroupRecord, RegionEntry
from kubevnfm_lcm_api.multicloud.taken_places import PlaceCheck
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstanceRequest

log = structlog.get_logger()

LEASE_S: Final = 15.0
_LOOK_S: Final = 30.0
"""So often open groups are looked for without a sign: another process may have ended before it claimed one."""
_RETRY_S: Final = 1.0
_PAUSES: Final = BackOff(first_s=0.05, longest_s=1.0)
_RESTS: Final = (OperationState.FAILED_TEMP, OperationState.FAILED, OperationState.ROLLED_BACK)
_REMOVED: Final = ProblemDetails(
    type="not-found", title="Not found", status=404, detail="the VNF was removed before it was ready"
)
_UNEXPECTED: Final = ProblemDetails(type="internal-error", status=500, detail="unexpected error")


@dataclass
class GroupWork:
    """The work on group operations."""

    on: RequestServices
    regions: CloudRegions
    check_places: PlaceCheck
    store: DocumentStore
    ring: KeyRing
    clock: Clock
    owners: Owners = field(default_factory=Owners)
    lease_s: float = LEASE_S
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _groups: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _starts: dict[tuple[str, str], asyncio.Task[None]] = field(default_factory=dict)
    """The starts that run, by group and region: a region that answers late delays no other."""
    _broken: set[str] = field(default_factory=set)
    """The groups at which this process has failed: they are tried again when their leases end."""

    def __post_init__(self) -> None:
        self._me = self.owners.new()

    def wake(self) -> None:
        """Look for group operations now."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await look_when_due(self._look, self._woken)
        finally:
            tasks = [*self._groups.values(), *self._starts.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> float:
        try:
            found = await self.store.find(COLLECTION, Query(by(isOpen=True), exclude=LARGE))
            for stored in found:
                await self._claim(stored)
        except StoreUnavailable as error:
            log.debug("groups_not_read", reason=str(error))
            return _RETRY_S
        return self._pause_s(found)

    def _pause_s(self, found: Sequence[Stored]) -> float:
        """Return the time until one of these groups may be claimed, or any is looked for without a sign."""
        # A group without a lease was claimed by another process at this moment.
        ends_s = [self._left_s(each) for each in found if each.id not in self._groups]
        return max(min([*ends_s, _LOOK_S]), _RETRY_S)

    def _left_s(self, stored: Stored) -> float:
        until = str(stored.body.get("leaseUntil", ""))
        if not until or self.owners.has_ended(str(stored.body.get("owner", ""))):
            return 0.0
        return lease_left_s(until, self.clock.now(), self.lease_s)

    async def _claim(self, stored: Stored) -> None:
        # The answer to a claim of this process may have been lost.
        is_mine = stored.body.get("owner") == self._me and stored.id not in self._broken
        if stored.id in self._groups or (self._left_s(stored) > 0 and not is_mine):
            return
        self._broken.discard(stored.id)
        try:
            await self.store.update(COLLECTION, stored.id, self._lease(), if_revision=stored.revision)
        except RevisionConflict:  # another process was faster
            return
        self._groups[stored.id] = asyncio.create_task(self._bring(stored.id), name=f"group {stored.id}")

    def _lease(self) -> dict[str, Any]:
        return {"owner": self._me, "leaseUntil": lease_end(self.clock.now(), self.lease_s)}

    async def _bring(self, group_id: str) -> None:
        quiet = 0
        try:
            while True:
                try:
                    before = await read(self.store, group_id)
                    if before is None or before.owner != self._me or not before.is_open:
                        return
                    moved = await self._pass(before)
                    quiet = 0 if moved else quiet + 1
                except (RevisionConflict, StoreUnavailable) as error:
                    # Cancelled or retried meanwhile, or the lease is lost: the next pass reads it again.
                    log.info("group_pass_repeated", group_id=group_id, reason=str(error))
                    quiet += 1
                await asyncio.sleep(_PAUSES.after(quiet) if quiet else 0)
        except Exception:  # a fault of ours with one group must not stop the others, and must be seen
            log.exception("group_failed", group_id=group_id)
            self._broken.add(group_id)
        finally:
            # Starts that still run are those of a group whose lease is lost: its next owner looks how far they were.
            starts = [self._starts.pop(key) for key in [key for key in self._starts if key[0] == group_id]]
            for task in starts:
                task.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            self._groups.pop(group_id, None)
            # A retry may have freed the group while this was at it.
            self.wake()

    async def _pass(self, before: GroupRecord) -> bool:
        """Do one pass; return whether the group has moved. Raises RevisionConflict, StoreUnavailable."""
        looked = [await self._looked_at(before, each) for each in before.regions if each.state == "RUNNING"]
        after = before.with_entries(looked).starting()
        is_late = before.lease_until < lease_end(self.clock.now(), self.lease_s * 2 / 3)
        if after == before and not is_late:
            return False
        fields = {**after.moves(), **self._lease()} if after != before else self._lease()
        mine = by(owner=self._me)
        await self.store.update(COLLECTION, before.id, fields, if_revision=before.revision, where=mine)
        known = {each.cloud_region_id: each.state for each in before.regions}
        for each in after.regions:
            if each.state == "RUNNING" and known[each.cloud_region_id] == "WAITING":
                self._start(after, each)
        return after != before

    def _start(self, group: GroupRecord, entry: RegionEntry) -> None:
        key = (group.id, entry.cloud_region_id)
        if key not in self._starts:
            # The task begins with this context, and keeps it.
            with traced_by(read_traceparent(group.traceparent)), caused_by(group.request_id):
                self._starts[key] = asyncio.create_task(self._begin(group, entry), name=f"group-region {key}")

    async def _looked_at(self, group: GroupRecord, entry: RegionEntry) -> RegionEntry:
        """Return a RUNNING region as it is now; one that was not begun is begun."""
        key = (group.id, entry.cloud_region_id)
        starting = self._starts.get(key)
        if starting is not None and not starting.done():
            return entry
        self._starts.pop(key, None)
        refusal = _refusal(entry, None if starting is None else starting.exception())
        stored = await self.store.get(instances.COLLECTION, entry.vnf_id(group.id))
        if stored is None:
            if refusal is not None:
                return entry.failed(refusal, failed_at=entry.failed_at)
            if entry.operation is not None:
                return entry.failed(_REMOVED)
            self._start(group, entry)
            return entry
        record = InstanceRecord.from_document(stored.body)
        operation = await self._operation(record)
        if operation is not None:
            entry = entry.model_copy(update={"operation": operation.occ.id})
        if record.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            return entry.model_copy(update={"state": "READY", "failed_at": None})
        is_claimed = record.internals.current_operation is not None
        is_resting = operation is not None and operation.occ.operation_state in _RESTS
        # An operation that runs counts above a refusal: another party has begun or retried it first.
        if refusal is not None and (is_resting or not is_claimed):
            return entry.failed(refusal, failed_at=entry.failed_at)
        if operation is not None and not is_claimed and operation.occ.operation is OperationType.TERMINATE:
            return entry.failed(_REMOVED)
        if operation is None or not is_resting:
            return entry
        if operation.occ.state_entered_time == entry.failed_at:
            # It has failed before this try.
            self._start(group, entry)
            return entry
        problem = operation.occ.error or _UNEXPECTED
        return entry.failed(problem, failed_at=operation.occ.state_entered_time)

    async def _operation(self, record: InstanceRecord) -> OccurrenceRecord | None:
        """Return the operation that has claimed an instance, or else its last one."""
        current = record.internals.current_operation
        if current is not None:
            stored = await self.store.get(occurrences.COLLECTION, current)
            return None if stored is None else OccurrenceRecord.from_document(stored.body)
        query = Query(by(vnfInstanceId=record.vnf.id), sort=Sort("startTime", descending=True), limit=1)
        found = await self.store.find(occurrences.COLLECTION, query)
        return OccurrenceRecord.from_document(found[0].body) if found else None

    async def _begin(self, group: GroupRecord, entry: RegionEntry) -> None:
        """Bring a VNF up, or try its operation again. Raises what refuses it."""
        whole = await self.store.get(COLLECTION, group.id)
        if whole is None:
            return
        asked = GroupRecord.from_stored(whole)
        body = body_for(asked.request, asked.values_by_region, entry.cloud_region_id)
        vnf_id = entry.vnf_id(group.id)
        stored = await self.store.get(instances.COLLECTION, vnf_id)
        wanted, origin = parsed(VnfInstanceRequest, body), Origin(str(group.by), "create")
        if stored is None:
            try:
                await vnf_requests.accept(
                    self.on,
                    self.regions,
                    wanted,
                    body,
                    origin,
                    check_places=self.check_places,
                    instance_id=vnf_id,
                    group_operation=group.id,
                )
            except AlreadyExists:  # another process has begun it: that one's counts
                log.info("group_region_begun", group_id=group.id, region=entry.cloud_region_id)
            return
        record = InstanceRecord.from_document(stored.body)
        if record.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            return
        current, operation = record.internals.current_operation, await self._operation(record)
        is_waiting = operation is not None and operation.occ.operation_state is OperationState.FAILED_TEMP
        if current is not None and not is_waiting:
            return
        region = await vnf_requests.region_of(self.regions, entry.cloud_region_id)
        if current is not None:
            await self.on.suspensions.check(record, record.internals.vim_ids)
            await self.on.engine.retry(current)
        else:
            _, _, again = await vnf_requests.asked_of(self.on, self.regions, region, wanted, body, origin)
            await vnf_requests.accepted(self.on, instantiate.checked(self.on, vnf_id, again))


def _refusal(entry: RegionEntry, error: BaseException | None) -> ProblemDetails | None:
    """Return why a start was refused; None if it was not, or if the answer of the database was lost: the instance says how far it was."""
    if error is None or isinstance(error, StoreUnavailable):
        return None
    if isinstance(error, VnfmError):
        return ProblemDetails.from_error(error)
    log.error("group_region_failed", region=entry.cloud_region_id, exc_info=error)
    return _UNEXPECTED


async def read(store: DocumentStore, group_id: str) -> GroupRecord | None:
    """Return a group operation without what it was asked for, which may have megabytes."""
    found = await store.find(COLLECTION, Query(by(id=group_id), exclude=LARGE))
    return GroupRecord.from_stored(found[0]) if found else None


def renewed(record: GroupRecord) -> Mapping[str, Any]:
    """Return the fields with which a group that is to be worked on again is free for any process."""
    return {**record.moves(), "leaseUntil": "", "owner": ""}
