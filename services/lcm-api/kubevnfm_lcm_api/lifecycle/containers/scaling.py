"""Scale and scale to level of a CNF (capi.md CR-033): the objects to scale, and their numbers of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_events import ApiVersion
from kubevnfm_events.infra import ObjectFacts
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import OperationType, ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.containers.changing import ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.drift import check_objects_exist
from kubevnfm_lcm_api.lifecycle.machines.scale_levels import level_steps, scale_status
from kubevnfm_lcm_api.lifecycle.workloads.drafts import ScaleWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.leaving_machines import leaving_machines
from kubevnfm_lcm_api.lifecycle.workloads.requested_scaling import check_majority, counted, owner_of_machines

_NOT_SCALABLE: Final = frozenset({"DaemonSet", "Pod"})
"""The kinds that can implement a VDU and have no ``scale`` subresource; of other kinds the cluster decides."""


def scaled_cnf(
    vnf: CnfUnderChange,
    operation: OperationType,
    levels: Mapping[str, int],
    request: ScaleVnfRequest | ScaleVnfToLevelRequest,
    original: Mapping[str, object],
    version: ApiVersion,
) -> ScaleCnfDraft:
    """Return the draft of a scaling to these levels. Raises InvalidInput, Unprocessable naming the attribute; Drifted."""
    if isinstance(request, ScaleVnfRequest):
        place, level_id = "aspectId", None
        vdu_ids = set(vnf.flavour.scaled_vdus(request.aspect_id))
    else:
        level_id = request.instantiation_level_id
        place = "scaleInfo" if level_id is None else "instantiationLevelId"
        vdu_ids = set(vnf.flavour.vdus)
    present, wanted = vnf.counts_at(vnf.scale_levels), vnf.counts_at(levels, level_id)
    workload = vnf.record.internals.workload
    if workload is None:
        objects = [
            (counted(one), str(one.vdu_id))
            for one in vnf.release.objects
            if one.vdu_id in vdu_ids and _is_scaled(one, place, is_changed=wanted[one.vdu_id] != present[one.vdu_id])
        ]
    else:
        changed = sorted(vdu_id for vdu_id in vdu_ids if wanted[vdu_id] != present[vdu_id])
        objects = [(owner_of_machines(vnf, vdu_id, place), vdu_id) for vdu_id in changed]
        for one, vdu_id in objects:
            check_majority(one, wanted[vdu_id], place)
    if not objects:
        raise Unprocessable(place, f"none of the VDUs {', '.join(sorted(vdu_ids)) or '(none)'} has an object to scale")
    check_objects_exist(vnf.record, (one for one, _ in objects), "scale")
    differences = {vdu_id: wanted[vdu_id] - present[vdu_id] for _, vdu_id in objects}
    leaving = leaving_machines(vnf, request.additional_params, differences)
    draft = ScaleCnfDraft(
        **vars(vnf.change(original, version, operation=operation, asked=request)),
        counts=tuple(one.model_copy(update={"count": wanted[vdu_id]}) for one, vdu_id in objects),
        counts_before=tuple(one.model_copy(update={"count": present[vdu_id]}) for one, vdu_id in objects),
        vdu_counts=differences,
        scale_status=scale_status(levels),
        instantiation_level_id=level_id,
        steps_of=level_steps(vnf.flavour, vnf.scale_levels, levels),
    )
    if workload is None:
        return draft
    return ScaleWorkloadDraft(**vars(draft), workload=workload, leaving=leaving)


def _is_scaled(one: ObjectFacts, place: str, *, is_changed: bool) -> bool:
    """Return whether the object is scaled. Raises Unprocessable if it should be and its kind cannot."""
    if one.kind not in _NOT_SCALABLE:
        return True
    if is_changed:
        raise Unprocessable(
            place, f"VDU {one.vdu_id} is the {one.kind} {one.name}, and a {one.kind} has no number of replicas to scale"
        )
    return False
