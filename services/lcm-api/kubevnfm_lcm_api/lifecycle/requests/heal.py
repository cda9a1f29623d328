"""Heal (SOL003 5.4.9, SOL002's vnfcInstanceId): selects the machines to replace, or the whole stack."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import HealVnfRequest, InstantiationState, OperationType

from kubevnfm_lcm_api.lifecycle.clusters.heal_steps import HEAL_END
from kubevnfm_lcm_api.lifecycle.clusters.healing import healed_cluster
from kubevnfm_lcm_api.lifecycle.clusters.registry_vnf import RegistryVnf
from kubevnfm_lcm_api.lifecycle.containers.healing import healed_cnf
from kubevnfm_lcm_api.lifecycle.containers.repair import ALL, check_no_repair
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.drift import check_stack_exists, is_stack_missing
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import HEAL, ChangeableVnfs, VnfUnderChange
from kubevnfm_lcm_api.lifecycle.machines.vnfcs import resource_ids
from kubevnfm_lcm_api.lifecycle.workloads.requested_healing import healed_workload

_WITH_STORAGE: Final = "tacker_extension_heal_include_block_storage"
_KEEP: Final = "x_keep_volume"


class Heal:
    """Accepts HealVnfRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(
        self, instance_id: str, request: HealVnfRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a heal; return the occurrence's id (sequences.md A4, A5).

        Raises: NotFound, TaskUnsupported, Conflict, Drifted; InvalidInput for an unknown VNFC or a malformed parameter;
        Unprocessable for nodes that a cluster cannot lose, and for volumes that cannot stay.
        """
        vnf = await self._vnfs.find_any(instance_id, HEAL)
        is_all = _flag(request.additional_params, ALL)
        if isinstance(vnf, CnfUnderChange):
            workload = vnf.record.internals.workload
            if workload is None:
                healed: Draft = healed_cnf(vnf, request, original, version)
            else:
                files = await self._vnfs.files(vnf.package.package_id)
                now = self._acceptance.now()
                healed = healed_workload(vnf, workload, request, original, version, now=now, files=files)
            return await self._acceptance.accept(
                vnf.stored,
                vnf.record,
                OperationType.HEAL,
                healed,
                original=original,
                version=version,
                flavour=vnf.flavour,
            )
        check_no_repair(request)
        chosen = resource_ids(request.vnfc_instance_id, vnf.info) if request.vnfc_instance_id else None
        is_missing = is_stack_missing(vnf.record)
        if chosen is not None:
            check_stack_exists(vnf.record, "heal of some machines")
        # As Tacker: v1 recreates the stack if no VNFC is named; v2 only if `all` is true, which also means the storage.
        # A stack that was deleted by hand has no machines that could be replaced in place.
        is_recreated = chosen is None and (version == "v1" or bool(is_all) or is_missing)
        # In a thread, because a private key may have to be opened with its passphrase.
        cluster = await asyncio.to_thread(
            healed_cluster,
            vnf,
            chosen,
            request.additional_params,
            base_hot=await self._vnfs.base_hot(vnf) if vnf.record.internals.phases else None,
        )
        servers = chosen if chosen is not None else [s.server_id for s in vnf.resources.servers]
        takes_storage = _takes_storage(request.additional_params, version, is_recreated=is_recreated)
        volumes = [v.resource_id for v in vnf.resources.volumes if takes_storage and v.server_id in servers]
        files = await self._vnfs.files(vnf.package.package_id)
        change = vnf.change(
            hide(original), request.additional_params, version, files, operation=OperationType.HEAL, asked=request
        )
        await self._vnfs.check(change)
        # A heal that failed after the deletion has left no machines; their number is what the VNF was scaled to.
        counts = vnf.counts if any(vnf.counts.values()) else vnf.declared_counts
        draft = HealVmDraft(
            **{**vars(change), "counts": counts},
            **cluster,
            servers=tuple(servers),
            volumes=tuple(volumes),
            is_recreated=is_recreated,
            instantiate_request=vnf.record.internals.request,
            registry=RegistryVnf.from_phases(vnf.record.internals.phases, HEAL_END, vnf.record.internals.parameters),
            # A stack that was deleted by hand has taken the registry away already.
            lost_registry=vnf.record.internals.own_registry if is_recreated and not is_missing else (),
            instance_to_make=_not_instantiated(vnf),
        )
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.HEAL,
            draft,
            original=original,
            version=version,
            flavour=vnf.flavour,
        )


def _flag(parameters: Mapping[str, Any], name: str) -> bool | None:
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(f"additionalParams/{name}", "true or false expected")
    return value


def _takes_storage(parameters: Mapping[str, Any], version: ApiVersion, *, is_recreated: bool) -> bool:
    """Return whether the volumes of the machines are replaced too, and their data lost.

    Raises: InvalidInput for a malformed parameter; Unprocessable if they must stay, but cannot.
    """
    with_storage, is_all, keep = (_flag(parameters, name) for name in (_WITH_STORAGE, ALL, _KEEP))
    if keep and (is_recreated or is_all or with_storage):
        why = "the stack is created again" if is_recreated else "another parameter asks for new volumes"
        raise Unprocessable(f"additionalParams/{_KEEP}", f"true, but {why}: false, or neither of both, expected")
    if keep is not None:
        return not keep
    # As Tacker.
    return bool(is_all) if version == "v2" else with_storage is not False


def _not_instantiated(vnf: VnfUnderChange) -> dict[str, Any]:
    """Return the VnfInstance that user data would have got at the instantiation."""
    instance = vnf.record.vnf.model_copy(
        update={"instantiation_state": InstantiationState.NOT_INSTANTIATED, "instantiated_vnf_info": None}
    )
    return instance.model_dump(by_alias=True, exclude_none=True)
