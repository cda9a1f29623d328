"""Scale and scale to level (SOL003 5.4.5, 5.4.6): computes the number of machines and selects those to remove."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kubevnfm_csar import MOST_VNFCS, Flavour, UnknownLevel
from kubevnfm_events import ApiVersion
from kubevnfm_events.infra import ServerFacts
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import OperationType, ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.clusters.scaling import cluster_fields
from kubevnfm_lcm_api.lifecycle.containers.scaling import scaled_cnf
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.machines.group_sizes import check_group_sizes, stack_values
from kubevnfm_lcm_api.lifecycle.machines.inventory import index_of
from kubevnfm_lcm_api.lifecycle.machines.scale_levels import level_steps, scale_status
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import SCALE, SCALE_TO_LEVEL, ChangeableVnfs, VnfUnderChange


class Scale:
    """Accepts ScaleVnfRequests and ScaleVnfToLevelRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(
        self, instance_id: str, request: ScaleVnfRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a scaling by steps; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for an unknown aspect or steps beyond its levels.
        """
        vnf = await self._vnfs.find_any(instance_id, SCALE)
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
        levels = {**vnf.scale_levels, request.aspect_id: now + steps}
        return await self._begin(vnf, OperationType.SCALE, levels, None, request, original, version)

    async def accept_level(
        self, instance_id: str, request: ScaleVnfToLevelRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a scaling to an instantiation level, or to a level of each named aspect; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for a level or aspect that the VNFD does not have.
        """
        vnf = await self._vnfs.find_any(instance_id, SCALE_TO_LEVEL)
        flavour = vnf.flavour
        if request.instantiation_level_id is not None:
            try:
                levels = flavour.scale_levels(request.instantiation_level_id)
                counts = flavour.initial_counts(request.instantiation_level_id)
            except UnknownLevel as error:
                raise InvalidInput("instantiationLevelId", str(error)) from error
            return await self._begin(vnf, OperationType.SCALE_TO_LEVEL, levels, counts, request, original, version)
        # Aspects that the request does not name keep their level.
        levels = dict(vnf.scale_levels)
        for index, target in enumerate(request.scale_info or ()):
            aspect = flavour.aspects.get(target.aspect_id)
            if aspect is None:
                known = ", ".join(flavour.aspects)
                raise InvalidInput(
                    f"scaleInfo[{index}]/aspectId", f"the VNFD has no scaling aspect {target.aspect_id}; it has {known}"
                )
            if target.scale_level > aspect.max_scale_level:
                raise InvalidInput(f"scaleInfo[{index}]/scaleLevel", f"0 to {aspect.max_scale_level} expected")
            levels[target.aspect_id] = target.scale_level
        return await self._begin(vnf, OperationType.SCALE_TO_LEVEL, levels, None, request, original, version)

    async def _begin(
        self,
        vnf: VnfUnderChange | CnfUnderChange,
        operation: OperationType,
        levels: Mapping[str, int],
        counts: Mapping[str, int] | None,
        request: ScaleVnfRequest | ScaleVnfToLevelRequest,
        original: Mapping[str, object],
        version: ApiVersion,
    ) -> str:
        """``counts``: machines by VDU of an instantiation level; None: present machines and what the levels add."""
        check_amounts(vnf.flavour, levels, _level_field(request))
        draft = (
            scaled_cnf(vnf, operation, levels, request, original, version)
            if isinstance(vnf, CnfUnderChange)
            else await self._machines(vnf, operation, levels, counts, request, original, version)
        )
        return await self._acceptance.accept(
            vnf.stored, vnf.record, operation, draft, original=original, version=version, flavour=vnf.flavour
        )

    async def _machines(
        self,
        vnf: VnfUnderChange,
        operation: OperationType,
        levels: Mapping[str, int],
        counts: Mapping[str, int] | None,
        request: ScaleVnfRequest | ScaleVnfToLevelRequest,
        original: Mapping[str, object],
        version: ApiVersion,
    ) -> ScaleVmDraft:
        wanted = {**vnf.counts, **(counts if counts is not None else _counts(vnf, levels))}
        leaving = _leaving(vnf, wanted, is_newest_first=_newest_first(request.additional_params, version))
        # In a thread, because a private key may have to be opened with its passphrase.
        cluster = await asyncio.to_thread(cluster_fields, vnf, wanted, request.additional_params, _chosen_by(request))
        await self._check_sizes(vnf, wanted, _chosen_by(request))
        files = await self._vnfs.files(vnf.package.package_id)
        body = {**_direction(vnf.counts, wanted), **hide(original)}
        change = vnf.change(body, request.additional_params, version, files, operation=operation, asked=request)
        await self._vnfs.check(change)
        return ScaleVmDraft(
            **{**vars(change), "counts": wanted, "scale_status": scale_status(levels)},
            **cluster,
            leaving=tuple(server.server_id for servers in leaving.values() for server in servers),
            # Stored, so that the level that a failed scaling has reached is found without the package.
            steps_of=level_steps(vnf.flavour, vnf.scale_levels, levels),
        )

    async def _check_sizes(self, vnf: VnfUnderChange, wanted: Mapping[str, int], field: str) -> None:
        """Raise Unprocessable for a size that a group of the Base HOT does not allow."""
        hot = await self._vnfs.base_hot(vnf)
        if hot is None:
            return
        internals = vnf.record.internals
        values = stack_values(
            hot.top, vnf.resources, internals.parameters, has_user_data=internals.user_data is not None
        )
        check_group_sizes(field, hot, vnf.resources, present=vnf.counts, wanted=wanted, values=values)


def check_amounts(flavour: Flavour, levels: Mapping[str, int], field: str) -> None:
    """Raise InvalidInput for a level that is higher, or has more VNFCs, than is worked on."""
    for name, level in levels.items():
        if level > MOST_VNFCS:
            raise InvalidInput(field, f"leads to level {level} of aspect {name}; at most {MOST_VNFCS} expected")
    amount = sum(flavour.counts_at(levels).values())
    if amount > MOST_VNFCS:
        raise InvalidInput(field, f"leads to {amount} VNFCs; at most {MOST_VNFCS} expected")


def _level_field(request: ScaleVnfRequest | ScaleVnfToLevelRequest) -> str:
    return "numberOfSteps" if isinstance(request, ScaleVnfRequest) else _chosen_by(request)


def _chosen_by(request: ScaleVnfRequest | ScaleVnfToLevelRequest) -> str:
    """Return the attribute by which the request chooses the machines."""
    if isinstance(request, ScaleVnfRequest):
        return "aspectId"
    return "scaleInfo" if request.instantiation_level_id is None else "instantiationLevelId"


def _counts(vnf: VnfUnderChange, levels: Mapping[str, int]) -> dict[str, int]:
    """Return the machines of the scaled VDUs: the present number and the difference between the levels."""
    # Not the absolute number of the level: two aspects may scale the same VDU, and both differences count.
    counts: dict[str, int] = {}
    for name, level in levels.items():
        aspect = vnf.flavour.aspects[name]
        old = vnf.scale_levels.get(name, 0)
        for vdu_id in aspect.vdu_ids:
            more = aspect.delta(vdu_id, level=level) - aspect.delta(vdu_id, level=old)
            # Not below 0: machines may be missing that the levels count.
            counts[vdu_id] = max(0, counts.get(vdu_id, vnf.counts.get(vdu_id, 0)) + more)
    return counts


def _direction(present: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, str]:
    """Return the ``type`` of a ScaleVnfRequest with this result; nothing if machines are both added and removed."""
    # Tacker's user data know only scale, not scale to level: they read `type`.
    differences = [count - present[vdu_id] for vdu_id, count in wanted.items()]
    if min(differences, default=0) < 0:
        return {} if max(differences) > 0 else {"type": "SCALE_IN"}
    return {"type": "SCALE_OUT"}


def _newest_first(parameters: Mapping[str, Any], version: ApiVersion) -> bool:
    """As Tacker: v2 removes the newest machines first, v1 the oldest unless ``is_reverse`` is true."""
    return version == "v2" or str(parameters.get("is_reverse")).lower() == "true"


def _leaving(vnf: VnfUnderChange, wanted: Mapping[str, int], *, is_newest_first: bool) -> dict[str, list[ServerFacts]]:
    """Return the machines to remove, by VDU."""
    # User data count on from the number of machines, so those that they have numbered leave from the end: a healed
    # machine is the newest, whatever its number. Machines of one stack update have the same creation time; the id makes
    # the order the same at every repeat.
    numbered = vnf.record.internals.user_data is not None
    leaving: dict[str, list[ServerFacts]] = {}
    for vdu_id, count in wanted.items():
        present = [server for server in vnf.resources.servers if server.vdu_id == vdu_id]
        index_by_id = {server.server_id: index_of(server) if numbered else None for server in present}
        servers = sorted(
            present,
            key=lambda server: (
                index_by_id[server.server_id] or 0,
                server.created_at.isoformat() if server.created_at else "",
                server.vnfc_id,
            ),
            reverse=is_newest_first or any(index is not None for index in index_by_id.values()),
        )
        if len(servers) > count:
            leaving[vdu_id] = servers[: len(servers) - count]
    return leaving
