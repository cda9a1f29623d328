"""Brings a VNF down: terminates it, and deletes its instance with the end of that operation (multicloud.md chapter 9)."""

from __future__ import annotations

from collections.abc import Callable

from kubevnfm_clients.multicloud.errors import RegionUnavailable
from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_kit.errors import Conflict
from kubevnfm_sol.lcm import InstantiationState, OperationState, OperationType, TerminateVnfRequest
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_lcm_api.lifecycle.core.claim_errors import InstanceChanged
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instances import any_state
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.requests import terminate
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf


async def accept(
    on: RequestServices,
    regions: CloudRegions,
    vnf: Vnf,
    *,
    is_orphaning: bool,
    is_forced: bool = False,
    check: Callable[[Stored], None],
) -> str | None:
    """Accept the removal of a VNF; return the id of the operation that ends it, None if it is gone already.

    ``is_orphaning``: its region does not answer, and what is there is given up; ``is_forced``: objects that are not gone after a short
    time are left (MC-059); ``check``: as of a change; it was met by ``vnf``.
    Raises: Conflict, OperationRunning; RegionUnavailable.
    """
    instance_id, running = vnf.record.vnf.id, vnf.operation
    is_new = vnf.record.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED
    if vnf.record.internals.current_operation is not None:
        begun = await _begun(on, regions, vnf, running, is_orphaning=is_orphaning, is_forced=is_forced)
        if begun is not None:
            return begun
        # The end of that operation has changed it since the check.
        check = any_state
    elif not is_new:
        await _check_region(regions, vnf, is_orphaning=is_orphaning)
    if is_new:
        await on.suspensions.check(vnf.record, vnf.record.internals.vim_ids)
        # The rest of one that was brought up in part is removed in the background.
        await on.instances.delete(instance_id, check=check)
        return None
    original = {"terminationType": "FORCEFUL" if is_orphaning else "GRACEFUL"}
    asked = Asked(parse(TerminateVnfRequest, original), original, "v2")
    checked = await terminate.checked(on, instance_id, asked, check=check, is_removal=True, gives_up_waiting=is_forced)
    return await on.acceptance.accept(checked)


async def _begun(
    on: RequestServices,
    regions: CloudRegions,
    vnf: Vnf,
    running: OccurrenceRecord | None,
    *,
    is_orphaning: bool,
    is_forced: bool,
) -> str | None:
    """Return the operation that has claimed the VNF, if it ends with it; None once it has failed for good.

    One that waits FAILED_TEMP goes on: a termination again, an instantiation backwards. Raises OperationRunning for any other.
    """
    running = running or await on.instances.operation_of(vnf.record)
    if running is None or not _can_end_with(running):
        await on.engine.check_free(vnf.record, vnf.record.vnf.instantiation_state)
        # It has ended meanwhile.
        raise InstanceChanged
    is_waiting = running.occ.operation_state is OperationState.FAILED_TEMP
    # The answer to the first of two equal requests may have been lost.
    is_repeated = not is_waiting and bool(running.draft.get("gives_up_waiting"))
    if is_forced and not (is_waiting and running.occ.operation is OperationType.TERMINATE) and not is_repeated:
        expected = "a VNF that is up, or whose removal waits FAILED_TEMP, expected"
        raise Conflict(f"force: {expected}; operation {running.occ.id} is {running.occ.operation_state}")
    if not is_waiting:
        return running.occ.id
    await on.suspensions.check(vnf.record, vnf.record.internals.vim_ids)
    await _check_region(regions, vnf, is_orphaning=is_orphaning)
    if is_orphaning:
        await on.engine.fail(running.occ.id)
        return None
    if running.occ.operation is OperationType.TERMINATE:
        await on.engine.retry(running.occ.id, change=_as_forced_removal if is_forced else _as_removal)
    else:
        await on.engine.rollback(running.occ.id, change=_as_removal)
    return running.occ.id


def _can_end_with(running: OccurrenceRecord) -> bool:
    """Return whether an operation removes the instance at its end, or can do so."""
    operation, state = running.occ.operation, running.occ.operation_state
    if operation not in {OperationType.TERMINATE, OperationType.INSTANTIATE}:
        return False
    if state is OperationState.FAILED_TEMP:
        return True
    is_on_the_way = operation is OperationType.TERMINATE or state is OperationState.ROLLING_BACK
    return is_on_the_way and bool(running.draft.get("is_removal"))


def _as_removal(draft: Draft) -> Draft:
    return draft.model_copy(update={"is_removal": True})


def _as_forced_removal(draft: Draft) -> Draft:
    return draft.model_copy(update={"is_removal": True, "gives_up_waiting": True})


async def _check_region(regions: CloudRegions, vnf: Vnf, *, is_orphaning: bool) -> None:
    place = vnf.record.internals.multicloud
    assert place is not None
    health = await regions.health(*place.key)
    if health.reachable and is_orphaning:
        raise Conflict(f"cloud region {place.cloud_region_id} answers: its objects can be deleted, leave out orphan")
    if not health.reachable and not is_orphaning:
        raise RegionUnavailable(f"cloud region {place.cloud_region_id} does not answer: {health.reason}")
