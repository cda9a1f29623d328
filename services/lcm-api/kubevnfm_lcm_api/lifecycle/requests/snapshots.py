"""VNF snapshots: take one, and go back to one (SOL003 5.4.21, 5.4.22)."""

from __future__ import annotations

from dataclasses import replace

from kubevnfm_kit.errors import Conflict, InvalidInput, Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationType
from kubevnfm_sol.snapshots import CreateVnfSnapshotRequest, RevertToVnfSnapshotRequest
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.kind import CREATE_SNAPSHOT, REVERT_TO_SNAPSHOT, Asked, UnderChange
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.requests.unread import unread_in


async def checked_creation(
    on: RequestServices, instance_id: str, asked: Asked[CreateVnfSnapshotRequest]
) -> CheckedRequest:
    """Return a snapshot that can be accepted.

    Raises: NotFound, TaskUnsupported; Conflict, also while another operation uses the individual VNF snapshot; Unprocessable if
    that does not exist or holds a snapshot already.
    """
    kind, vnf = await on.find(instance_id, CREATE_SNAPSHOT)
    stored, found = await on.snapshots.find(asked.request.vnf_snapshot_info_id)
    if found.info.vnf_snapshot is not None or found.info.vnf_snapshot_pkg_id is not None:
        raise Unprocessable("vnfSnapshotInfoId", f"VNF snapshot {stored.id} holds a snapshot already: make another one")
    occurrence_id = new_id()
    draft = await kind.create_snapshot(vnf, asked, occurrence_id)
    return await _checked(on, vnf, OperationType.CREATE_SNAPSHOT, draft, asked, stored, occurrence_id)


async def checked_reversal(
    on: RequestServices, instance_id: str, asked: Asked[RevertToVnfSnapshotRequest]
) -> CheckedRequest:
    """Return a reversal that can be accepted.

    Raises: NotFound, TaskUnsupported; Conflict, also for a snapshot that is in use, not complete, not the newest of a volume, or
    of other machines than the VNF has; Unprocessable for one that does not exist, is of another VNF or was not taken here.
    """
    kind, vnf = await on.find(instance_id, REVERT_TO_SNAPSHOT)
    stored, found = await on.snapshots.find(asked.request.vnf_snapshot_info_id)
    snapshot = found.info.vnf_snapshot
    if snapshot is None or (found.internals.created_by is not None and not found.is_complete):
        raise Conflict(f"VNF snapshot {stored.id} holds no complete snapshot")
    if found.internals.created_by is None:
        raise Unprocessable(
            "vnfSnapshotInfoId",
            f"VNF snapshot {stored.id} was not taken by this VNFM: it has no images and volume snapshots to revert to",
        )
    if snapshot.vnf_instance_id != instance_id:
        raise Unprocessable(
            "vnfSnapshotInfoId", f"VNF snapshot {stored.id} is of VNF instance {snapshot.vnf_instance_id}"
        )
    draft = await kind.revert_to_snapshot(vnf, asked, found)
    newer = await on.snapshots.newer(found)
    if newer is not None:
        raise Conflict(
            f"VNF snapshot {newer} has a newer snapshot of the same volume, and Cinder reverts a volume to its newest one only: "
            "delete that first"
        )
    return await _checked(on, vnf, OperationType.REVERT_TO_SNAPSHOT, draft, asked, stored, new_id())


async def accept(on: RequestServices, checked: CheckedRequest) -> str:
    """Accept an operation on a snapshot; return the occurrence's id. Raises Conflict, Unprocessable."""
    snapshot, occurrence_id = checked.snapshot, checked.asked.origin.occurrence_id
    assert snapshot is not None
    assert occurrence_id is not None
    # Before the operation exists: of two requests for one snapshot, one is refused. A claim whose operation is never stored
    # ends by itself.
    await on.snapshots.claim(snapshot, occurrence_id)
    try:
        return await on.acceptance.accept(checked)
    except (Conflict, InvalidInput):
        # Refused. After any other error the operation may exist.
        await on.snapshots.release(snapshot.id, occurrence_id)
        raise


async def _checked(
    on: RequestServices,
    vnf: UnderChange,
    operation: OperationType,
    draft: Draft,
    asked: Asked[SolType],
    snapshot: Stored,
    occurrence_id: str,
) -> CheckedRequest:
    named = replace(asked, origin=replace(asked.origin, occurrence_id=occurrence_id))
    warnings = await unread_in(on, draft, asked, vnf.flavour)
    return CheckedRequest(
        vnf.stored, vnf.record, operation, draft, named, flavour=vnf.flavour, warnings=warnings, snapshot=snapshot
    )
