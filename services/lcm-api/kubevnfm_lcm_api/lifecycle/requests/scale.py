"""Scale and scale to level (SOL003 5.4.5, 5.4.6): the levels that a request leads to."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_csar.errors import UnknownLevel
from kubevnfm_csar.vnfd.model import MOST_VNFCS, Flavour
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.lcm import OperationType, ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.kind import SCALE, SCALE_TO_LEVEL, Asked, Levels, UnderChange, VnfKind
from kubevnfm_lcm_api.lifecycle.requests.declared_parameters import check_declared_parameters
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.requests.unread import unread_in


async def checked(on: RequestServices, instance_id: str, asked: Asked[ScaleVnfRequest]) -> CheckedRequest:
    """Return a scaling by steps that can be accepted.

    Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for an unknown aspect or steps beyond its levels.
    """
    request = asked.request
    kind, vnf = await on.find(instance_id, SCALE)
    aspect = vnf.flavour.aspects.get(request.aspect_id)
    if aspect is None:
        known = ", ".join(vnf.flavour.aspects)
        raise InvalidInput("aspectId", f"the VNFD has no scaling aspect {request.aspect_id}; it has {known}")
    now = vnf.scale_levels.get(request.aspect_id, 0)
    steps = request.number_of_steps if request.type == "SCALE_OUT" else -request.number_of_steps
    if not 0 <= now + steps <= aspect.max_scale_level:
        raise InvalidInput(
            "numberOfSteps",
            f"{request.type} by {request.number_of_steps} leads to level {now + steps} of aspect "
            f"{request.aspect_id}; 0 to {aspect.max_scale_level} expected, present level {now}",
        )
    by_aspect = {**vnf.scale_levels, request.aspect_id: now + steps}
    levels = Levels(OperationType.SCALE, by_aspect, None, "aspectId")
    return await _checked(on, kind, vnf, levels, asked)


async def checked_level(on: RequestServices, instance_id: str, asked: Asked[ScaleVnfToLevelRequest]) -> CheckedRequest:
    """Return a scaling to an instantiation level, or to a level of each named aspect, that can be accepted.

    Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for a level or aspect that the VNFD does not have.
    """
    request = asked.request
    kind, vnf = await on.find(instance_id, SCALE_TO_LEVEL)
    flavour = vnf.flavour
    if request.instantiation_level_id is not None:
        try:
            levels = flavour.scale_levels(request.instantiation_level_id)
            counts = flavour.initial_counts(request.instantiation_level_id)
        except UnknownLevel as error:
            raise InvalidInput("instantiationLevelId", str(error)) from error
        place = "instantiationLevelId"
        chosen = Levels(OperationType.SCALE_TO_LEVEL, levels, counts, place)
        return await _checked(on, kind, vnf, chosen, asked)
    # Aspects that the request does not name keep their level.
    levels, named = dict(vnf.scale_levels), set[str]()
    for index, target in enumerate(request.scale_info or ()):
        if target.vnfd_id not in (None, vnf.vnfd.vnfd_id):
            raise InvalidInput(f"scaleInfo[{index}]/vnfdId", f"{vnf.vnfd.vnfd_id}, the VNFD of the VNF, expected")
        aspect = flavour.aspects.get(target.aspect_id)
        if aspect is None:
            known = ", ".join(flavour.aspects)
            raise InvalidInput(
                f"scaleInfo[{index}]/aspectId", f"the VNFD has no scaling aspect {target.aspect_id}; it has {known}"
            )
        if target.aspect_id in named:
            raise InvalidInput(f"scaleInfo[{index}]/aspectId", f"aspect {target.aspect_id} is there already")
        named.add(target.aspect_id)
        if target.scale_level > aspect.max_scale_level:
            raise InvalidInput(f"scaleInfo[{index}]/scaleLevel", f"0 to {aspect.max_scale_level} expected")
        levels[target.aspect_id] = target.scale_level
    chosen = Levels(OperationType.SCALE_TO_LEVEL, levels, None, "scaleInfo")
    return await _checked(on, kind, vnf, chosen, asked)


async def _checked(
    on: RequestServices,
    kind: VnfKind,
    vnf: UnderChange,
    levels: Levels,
    asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest],
) -> CheckedRequest:
    is_scale = isinstance(asked.request, ScaleVnfRequest)
    check_amounts(vnf.flavour, levels.by_aspect, "numberOfSteps" if is_scale else levels.place)
    draft = await kind.scale(vnf, levels, asked)
    await check_declared_parameters(on, levels.operation, asked.request, vnf.flavour, draft)
    warnings = await unread_in(on, draft, asked, vnf.flavour)
    return CheckedRequest(
        vnf.stored, vnf.record, levels.operation, draft, asked, flavour=vnf.flavour, warnings=warnings
    )


def check_amounts(flavour: Flavour, levels: Mapping[str, int], field: str) -> None:
    """Raise InvalidInput for a level that is higher, or has more VNFCs, than is worked on."""
    for name, level in levels.items():
        if level > MOST_VNFCS:
            raise InvalidInput(field, f"leads to level {level} of aspect {name}; at most {MOST_VNFCS} expected")
    amount = sum(flavour.counts_at(levels).values())
    if amount > MOST_VNFCS:
        raise InvalidInput(field, f"leads to {amount} VNFCs; at most {MOST_VNFCS} expected")
