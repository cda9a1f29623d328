"""Scale and scale to level of a CNF (capi.md CR-033): the objects to scale, and their numbers of replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, POD_TEMPLATES, REPLICATED
from kubevnfm_events.objects import ObjectCount, ObjectFacts
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.containers.changing import ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.drift import check_objects_exist
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Levels
from kubevnfm_lcm_api.lifecycle.core.scale_levels import level_steps, scale_status

_NOT_SCALABLE: Final = frozenset(kind for _, kind in {*POD_TEMPLATES, *MACHINE_TEMPLATES} - REPLICATED)
"""The kinds with pods or machines, and without a ``scale`` subresource; of other kinds the cluster decides."""
LEAVING: Final = "vnfc_instance_ids"


def scaled_cnf(
    vnf: CnfUnderChange,
    levels: Levels,
    asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest],
) -> ScaleCnfDraft:
    """Return the draft of a scaling to these levels. Raises InvalidInput, Unprocessable naming the attribute; Drifted."""
    present, wanted, vdu_ids = scaled_counts(vnf, levels, asked.request)
    ids = {target.name: target.vdu_id for target in vnf.targets}
    for network in vnf.record.internals.networks:
        vdu_id = network.vdu_id if network.vdu_id in wanted else ids.get(network.vdu_id, network.vdu_id)
        if network.ip_address is not None and wanted.get(vdu_id, 0) > 1:
            why = f"{network.vdu_id} has the fixed address {network.ip_address} on {network.link.name}, which one pod can have"
            raise Unprocessable(levels.place, f"up to one pod expected: {why}")
    objects = [
        (counted(one), str(one.vdu_id))
        for one in vnf.release.objects
        if one.vdu_id in vdu_ids and _is_scaled(one, levels.place, is_changed=wanted[one.vdu_id] != present[one.vdu_id])
    ]
    draft = scaling(vnf, levels, asked, objects)
    if asked.request.additional_params.get(LEAVING) is not None:
        place = f"additionalParams/{LEAVING}"
        raise Unprocessable(place, "Kubernetes chooses the pods of a CNF that leave: leave it out")
    return draft


def scaled_counts(
    vnf: CnfUnderChange, levels: Levels, request: ScaleVnfRequest | ScaleVnfToLevelRequest
) -> tuple[dict[str, int], dict[str, int], set[str]]:
    """Return the VNFCs by VDU, at present and as wanted, and the VDUs that the request is about."""
    if isinstance(request, ScaleVnfRequest):
        level_id, vdu_ids = None, set(vnf.flavour.scaled_vdus(request.aspect_id))
    else:
        level_id, vdu_ids = request.instantiation_level_id, set(vnf.flavour.vdus)
    return vnf.counts_at(vnf.scale_levels), vnf.counts_at(levels.by_aspect, level_id), vdu_ids


def scaling(
    vnf: CnfUnderChange,
    levels: Levels,
    asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest],
    objects: Sequence[tuple[ObjectCount, str]],
) -> ScaleCnfDraft:
    """Return the draft; ``objects``: those to scale, each with its VDU. Raises Unprocessable; Drifted for a deleted one."""
    present, wanted, vdu_ids = scaled_counts(vnf, levels, asked.request)
    if not objects:
        why = f"none of the VDUs {', '.join(sorted(vdu_ids)) or '(none)'} has an object to scale"
        raise Unprocessable(levels.place, why)
    check_objects_exist(vnf.record, (one for one, _ in objects), "scale")
    is_change = {vdu_id: wanted[vdu_id] != present[vdu_id] for _, vdu_id in objects}

    def numbered(counts: Mapping[str, int]) -> tuple[ObjectCount, ...]:
        return tuple(
            one.model_copy(update={"count": counts[vdu_id], "is_change": is_change[vdu_id]}) for one, vdu_id in objects
        )

    return ScaleCnfDraft(
        **vars(vnf.change(asked, levels.operation)),
        counts=numbered(wanted),
        counts_before=numbered(present),
        vdu_counts={vdu_id: wanted[vdu_id] - present[vdu_id] for _, vdu_id in objects},
        scale_status=scale_status(levels.by_aspect),
        instantiation_level_id=None
        if isinstance(asked.request, ScaleVnfRequest)
        else asked.request.instantiation_level_id,
        steps_of=level_steps(vnf.flavour, vnf.scale_levels, levels.by_aspect),
    )


def counted(one: ObjectFacts, *, topology: str | None = None) -> ObjectCount:
    """Return the object to scale, without a count; ``topology``: the part of it that has the number."""
    return ObjectCount(
        api_version=one.api_version, kind=one.kind, namespace=one.namespace, name=one.name, count=0, topology=topology
    )


def _is_scaled(one: ObjectFacts, place: str, *, is_changed: bool) -> bool:
    """Return whether the object is scaled. Raises Unprocessable if it should be and its kind cannot."""
    if one.kind not in _NOT_SCALABLE:
        return True
    if is_changed:
        raise Unprocessable(
            place, f"VDU {one.vdu_id} is the {one.kind} {one.name}, and a {one.kind} has no number of replicas to scale"
        )
    return False
