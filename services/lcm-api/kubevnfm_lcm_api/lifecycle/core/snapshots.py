"""The individual VNF snapshots (SOL003 5.4.23 to 5.4.25): made, changed and deleted by callers, filled by CREATE_SNAPSHOT.

A snapshot outlives its VNF. Its images and volume snapshots are those of the steps of the operation that has made them, and are
deleted by undoing these steps, in an operation of lcm-api's own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from kubevnfm_events.snapshots import (
    ForgetSnapshot,
    MachineSnapshot,
    RecordSnapshot,
    SnapshotForgotten,
    SnapshotRecorded,
)
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing, hide, opened, without_secrets
from kubevnfm_sol.lcm import TERMINAL, OperationState
from kubevnfm_sol.snapshots import (
    CreateVnfSnapshotInfoRequest,
    GivenHandle,
    StorageSnapshot,
    VnfcSnapshotInfo,
    VnfSnapshot,
    VnfSnapshotInfo,
    VnfSnapshotInfoModificationRequest,
)
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Stored
from kubevnfm_store.races import repeat_lost_writes
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import Done, Outcome, StepContext

from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instances import any_state
from kubevnfm_lcm_api.lifecycle.core.messages import removal_of_remains
from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle
from kubevnfm_lcm_api.lifecycle.core.snapshot import COLLECTION, SnapshotInternals, SnapshotRecord, snapshots_of

_ACCEPTED_WITHIN: Final = timedelta(seconds=60)
"""A claim without an operation so much later is that of a process that has died between both writes."""
IMAGE: Final = "OS::Glance::Image"
VOLUME_SNAPSHOT: Final = "OS::Cinder::Snapshot"
_NOT_COPIED: Final = ("internal", "createdAt", "updatedAt", "vnfPkgId")


class Snapshots:
    """Creates, finds, fills and deletes individual VNF snapshots."""

    def __init__(self, *, store: DocumentStore, outbox: Outbox, ring: KeyRing, clock: Clock) -> None:
        self._store, self._outbox, self._ring, self._clock = store, outbox, ring, clock

    # --- from the gateway ---------------------------------------------------------------------------------------------

    async def create(self, request: CreateVnfSnapshotInfoRequest) -> Stored:
        """Create an individual VNF snapshot, empty or with what is known of a VNF snapshot package. Raises Unprocessable."""
        _check_given(request.vnf_snapshot)
        now = rfc3339(self._clock.now())
        info = VnfSnapshotInfo(
            id=new_id(), vnf_snapshot_pkg_id=request.vnf_snapshot_pkg_id, vnf_snapshot=request.vnf_snapshot
        )
        record = SnapshotRecord(info=info, created_at=now, updated_at=now)
        return await self._outbox.insert(COLLECTION, info.id, record.document(self._ring))

    async def get(self, snapshot_info_id: str) -> Stored:
        """Return the individual VNF snapshot. Raises NotFound."""
        stored = await self._store.get(COLLECTION, snapshot_info_id)
        if stored is None:
            raise NotFound(f"VNF snapshot {snapshot_info_id} does not exist")
        return stored

    @repeat_lost_writes
    async def modify(
        self,
        snapshot_info_id: str,
        request: VnfSnapshotInfoModificationRequest,
        *,
        check: Callable[[Stored], None] = any_state,
    ) -> SnapshotRecord:
        """Set the attributes of an empty individual VNF snapshot; return it.

        ``check``: as of `delete`. Raises: NotFound; Unprocessable; Conflict if it holds a snapshot or is in use.
        """
        stored = await self.get(snapshot_info_id)
        check(stored)
        record = SnapshotRecord.from_document(stored.body)
        await self._check_unused(record)
        if record.info.vnf_snapshot is not None:
            raise Conflict(f"VNF snapshot {snapshot_info_id} holds a snapshot already")
        _check_given(request.vnf_snapshot)
        changes = {name: getattr(request, name) for name in request.model_fields_set}
        changed = record.with_info(**changes).model_copy(update={"updated_at": rfc3339(self._clock.now())})
        await self._outbox.replace(
            COLLECTION, snapshot_info_id, changed.document(self._ring), if_revision=stored.revision
        )
        return changed

    async def delete(self, snapshot_info_id: str, *, check: Callable[[Stored], None] = any_state) -> None:
        """Delete an individual VNF snapshot; its images and volume snapshots are deleted in the background.

        ``check`` gets it as it will be deleted; it raises if the caller expected another state (If-Match).
        Raises: NotFound; Conflict while an operation uses it.
        """
        stored = await self.get(snapshot_info_id)
        check(stored)
        record = SnapshotRecord.from_document(stored.body)
        await self._check_unused(record)
        messages = []
        created_by = record.internals.created_by
        if created_by is not None and record.info.vnf_snapshot is not None:
            instance_id = record.info.vnf_snapshot.vnf_instance_id
            removal_id = derived_id("remove-snapshot", snapshot_info_id)
            messages.append(removal_of_remains(instance_id, created_by, removal_id))
        try:
            await self._outbox.delete(COLLECTION, snapshot_info_id, if_revision=stored.revision, events=messages)
        except RevisionConflict as error:
            raise Conflict("the VNF snapshot was changed by another request meanwhile: try again") from error

    # --- operations ---------------------------------------------------------------------------------------------------

    async def find(self, snapshot_info_id: str) -> tuple[Stored, SnapshotRecord]:
        """Return the individual VNF snapshot that a request names, if no operation uses it. Raises Unprocessable, Conflict."""
        stored = await self._store.get(COLLECTION, snapshot_info_id)
        if stored is None:
            raise Unprocessable("vnfSnapshotInfoId", f"VNF snapshot {snapshot_info_id} does not exist")
        record = SnapshotRecord.from_document(stored.body)
        await self._check_unused(record)
        return stored, record

    async def claim(self, stored: Stored, occurrence_id: str) -> None:
        """Reserve it for an operation that is about to be accepted. Raises Conflict if another request was faster."""
        claim = {"internal/usedBy": occurrence_id, "internal/usedAt": rfc3339(self._clock.now())}
        try:
            await self._store.update(COLLECTION, stored.id, claim, if_revision=stored.revision)
        except RevisionConflict as error:
            raise Conflict(f"VNF snapshot {stored.id} was changed by another request meanwhile: try again") from error

    async def release(self, snapshot_info_id: str, occurrence_id: str) -> None:
        """Take back the claim of an operation that was not accepted."""
        ours = Compare("internal/usedBy", Op.EQ, [occurrence_id])
        try:
            await self._store.update(
                COLLECTION, snapshot_info_id, {}, unset=("internal/usedBy", "internal/usedAt"), where=ours
            )
        except RevisionConflict:
            return

    async def newer(self, record: SnapshotRecord) -> str | None:
        """Return another individual VNF snapshot that has a newer snapshot of one of its volumes; None: there is none."""
        begun = record.info.vnf_snapshot.creation_started_at if record.info.vnf_snapshot is not None else None
        instance_id = record.info.vnf_snapshot.vnf_instance_id if record.info.vnf_snapshot is not None else ""
        for other in await snapshots_of(self._store, instance_id):
            found = other.info.vnf_snapshot
            if other.info.id == record.info.id or found is None or not record.volume_ids & other.volume_ids:
                continue
            if begun is not None and (found.creation_started_at or "") > begun:
                return other.info.id
        return None

    # --- steps --------------------------------------------------------------------------------------------------------

    @repeat_lost_writes
    async def record_snapshot(self, command: RecordSnapshot, _: StepContext) -> Outcome:
        """Write what exists of the snapshot. Raises NotFound, Conflict if it is not the operation's own."""
        stored = await self.get(command.snapshot_info_id)
        record = SnapshotRecord.from_document(stored.body)
        if record.internals.used_by != command.occurrence_id:
            raise Conflict(f"VNF snapshot {command.snapshot_info_id} is held by another operation")
        now = rfc3339(self._clock.now())
        before = record.info.vnf_snapshot
        snapshot = before if before is not None else await self._begun(command, now)
        snapshot = snapshot.model_copy(update={"vnfc_snapshots": tuple(map(_vnfc(command), command.machines))})
        if command.is_complete and snapshot.creation_finished_at is None:
            snapshot = snapshot.model_copy(update={"creation_finished_at": now})
        filled = record.with_info(vnf_snapshot=snapshot).with_internals(
            created_by=command.occurrence_id,
            vim_id=command.vim_id,
            vim_key=command.vim_key,
            stack=command.stack,
            machines=command.machines,
        )
        await self._write(stored, filled.model_copy(update={"updated_at": now}))
        return Done(SnapshotRecorded(snapshot_info_id=command.snapshot_info_id))

    @repeat_lost_writes
    async def forget_snapshot(self, command: ForgetSnapshot, _: StepContext) -> Outcome:
        """Empty it, and end the claim of the operation."""
        stored = await self._store.get(COLLECTION, command.snapshot_info_id)
        if stored is not None:
            record = SnapshotRecord.from_document(stored.body)
            if record.internals.used_by == command.occurrence_id:
                emptied = record.with_info(vnf_snapshot=None).model_copy(
                    update={"internals": SnapshotInternals(), "updated_at": rfc3339(self._clock.now())}
                )
                await self._write(stored, emptied)
        return Done(SnapshotForgotten(snapshot_info_id=command.snapshot_info_id))

    # --- the inside ---------------------------------------------------------------------------------------------------

    async def _begun(self, command: RecordSnapshot, now: str) -> VnfSnapshot:
        stored = await self._store.get(instances.COLLECTION, command.vnf_instance_id)
        if stored is None:
            raise NotFound(f"VNF instance {command.vnf_instance_id} does not exist")
        copied: dict[str, Any] = {name: value for name, value in stored.body.items() if name not in _NOT_COPIED}
        info = copied.get("instantiatedVnfInfo") or {}
        copied["instantiatedVnfInfo"] = {name: value for name, value in info.items() if name != "additionalParams"}
        return VnfSnapshot(
            id=command.snapshot_id,
            vnf_instance_id=command.vnf_instance_id,
            creation_started_at=now,
            vnfd_id=str(stored.body["vnfdId"]),
            vnf_instance=dict(without_secrets(hide(opened(copied)))),
            vnfc_snapshots=(),
            user_defined_data=command.user_defined_data or None,
        )

    async def _check_unused(self, record: SnapshotRecord) -> None:
        """Raise Conflict while an operation uses it."""
        used_by, used_at = record.internals.used_by, record.internals.used_at
        if used_by is None:
            return
        stored = await self._store.get(occurrences.COLLECTION, used_by)
        if stored is None:
            if used_at is None or self._clock.now() - datetime.fromisoformat(used_at) > _ACCEPTED_WITHIN:
                return
            raise Conflict(f"VNF snapshot {record.info.id} is in use: an operation was just accepted ({used_by})")
        state = OperationState(stored.body["operationState"])
        if state not in TERMINAL:
            operation = stored.body["operation"]
            raise Conflict(f"VNF snapshot {record.info.id} is in use by {operation} {used_by}, which is {state}")

    async def _write(self, stored: Stored, record: SnapshotRecord) -> None:
        body = record.document(self._ring)
        await self._outbox.replace(COLLECTION, stored.id, body, if_revision=stored.revision)


def _check_given(snapshot: VnfSnapshot | None) -> None:
    """Raise Unprocessable for content that could not be shown."""
    if snapshot is not None and snapshot.vnf_state_snapshot_info is not None:
        raise Unprocessable(
            "vnfSnapshot/vnfStateSnapshotInfo",
            "state files of VNF snapshot packages are not fetched: leave it out",
        )


def _vnfc(command: RecordSnapshot) -> Callable[[MachineSnapshot], VnfcSnapshotInfo]:
    """Return the function that shows a machine of the snapshot."""
    stored = {one.resource_id for one in command.stack.volumes}

    def shown(machine: MachineSnapshot) -> VnfcSnapshotInfo:
        compute = (machine.image_id, IMAGE) if machine.image_id is not None else None
        storages = []
        for volume in machine.volumes:
            if volume.volume_id in stored:
                snapshot = _handle(volume.snapshot_id, command.vim_key, VOLUME_SNAPSHOT)
                storages.append(
                    StorageSnapshot(storage_resource_id=volume.volume_id, storage_snapshot_resource=snapshot)
                )
            if volume.is_root and compute is None:
                # The machine boots from it: there is no image.
                compute = (volume.snapshot_id, VOLUME_SNAPSHOT)
        return VnfcSnapshotInfo(
            id=machine.vnfc_id,
            vnfc_instance_id=machine.vnfc_id,
            creation_started_at=rfc3339(machine.started_at) if machine.started_at is not None else None,
            creation_finished_at=rfc3339(machine.finished_at) if machine.finished_at is not None else None,
            vnfc_resource_info_id=machine.vnfc_id,
            compute_snapshot_resource=_handle(compute[0], command.vim_key, compute[1]) if compute else None,
            storage_snapshot_resources=tuple(storages) or None,
        )

    return shown


def _handle(resource_id: str, vim_key: str, level_type: str) -> GivenHandle:
    return GivenHandle(**vars(handle(resource_id, vim_key, level_type)))
