"""Heal of a workload cluster (capi.md chapter 15, CR-121): the Machines to replace, or the objects to repair."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kubevnfm_events.capi import MachineFacts
from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_START
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_sol.lcm import HealVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.containers.repair import FORCE, asks_for_repair
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.drift import check_cluster_exists, check_objects_exist
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, CAPI, REPAIR, flag
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_by_vnfc
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals, is_of_control_plane
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of
from kubevnfm_lcm_api.lifecycle.workloads.capi import ADDONS
from kubevnfm_lcm_api.lifecycle.workloads.drafts import RollOutWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.healing import HealWorkloadDraft, RepairWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.recreating import RecreateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.requested_replacement import roll_out_time

_RECREATE: Final = "recreate"
_RECREATE_PLACE: Final = f"additionalParams/{CAPI}/{_RECREATE}"


def healed_workload(
    vnf: CnfUnderChange,
    workload: WorkloadInternals,
    asked: Asked[HealVnfRequest],
    now: datetime,
    files: frozenset[str],
) -> HealWorkloadDraft | RollOutWorkloadDraft | RepairWorkloadDraft | RecreateWorkloadDraft:
    """Return the draft; a request without ``vnfcInstanceId`` has the Machines replaced that are not healthy.

    With ``all``, every Machine is rolled out, as by CR-103. With ``repair``, no Machine is chosen. With ``capi.recreate``, the whole
    cluster is built again. ``files``: the paths in the package.

    Raises: NotFound with all unknown VNFCs; Conflict for the only Machine of a control plane; Drifted if the cluster,
    or the owner of a Machine, was found deleted; InvalidInput, Unprocessable naming the parameter.
    """
    parameters = asked.request.additional_params
    is_forced = flag(parameters, FORCE)
    if _is_to_be_recreated(parameters):
        return _recreated(vnf, workload, asked, files)
    check_cluster_exists(vnf.record, "heal")
    change = vars(vnf.change(asked, OperationType.HEAL))
    if asks_for_repair(asked.request):
        return RepairWorkloadDraft(**change, workload=workload)
    if flag(parameters, ALL):
        if asked.request.vnfc_instance_id:
            raise Unprocessable(
                f"additionalParams/{ALL}", "true replaces every Machine: leave it or vnfcInstanceId out"
            )
        return RollOutWorkloadDraft(**change, workload=workload, roll_out_after=roll_out_time(now), is_heal=True)
    named = _machines(asked.request.vnfc_instance_id or (), vnf, workload)
    owners = {each.vdu_id for each in named}
    check_objects_exist(vnf.record, (one for one in vnf.release.objects if one.vdu_id in owners), "heal")
    planes = [each for each in workload.machines if is_of_control_plane(each)]
    if not is_forced and len(planes) == 1 and planes[0] in named:
        raise Conflict(
            f"vnfcInstanceId: {planes[0].name} is the only Machine of the control plane, and without it the cluster is lost "
            f"(additionalParams/{FORCE}: true replaces it nevertheless)"
        )
    return HealWorkloadDraft(
        **change,
        workload=workload,
        named=named,
        is_forced=is_forced,
    )


def _is_to_be_recreated(parameters: Mapping[str, Any]) -> bool:
    """Return whether ``additionalParams.capi.recreate`` is true. Raises InvalidInput naming the field."""
    given = parameters.get(CAPI, {})
    if not isinstance(given, Mapping):
        raise InvalidInput(f"additionalParams/{CAPI}", "an object expected")
    for name in given:
        if name != _RECREATE:
            raise InvalidInput(f"additionalParams/{CAPI}/{name}", f"a heal supports {_RECREATE} only: leave it out")
    wanted = given.get(_RECREATE, False)
    if not isinstance(wanted, bool):
        raise InvalidInput(_RECREATE_PLACE, "true or false expected")
    return wanted


def _recreated(
    vnf: CnfUnderChange,
    workload: WorkloadInternals,
    asked: Asked[HealVnfRequest],
    files: frozenset[str],
) -> RecreateWorkloadDraft:
    parameters = asked.request.additional_params
    others = [f"additionalParams/{name}" for name in (ALL, FORCE, REPAIR) if flag(parameters, name)]
    for place in [*others, *(["vnfcInstanceId"] if asked.request.vnfc_instance_id else [])]:
        raise Unprocessable(place, f"not expected beside {_RECREATE_PLACE}, which builds the whole cluster again")
    # Known before the cluster is deleted: a change of package may have left the addons as they were.
    lacking = [name for name in workload.capi.addon_def_files if "://" not in name and name not in files]
    if lacking:
        why = f"the package lacks the addons {', '.join(lacking)}: name others by a change of package ({CAPI}/{ADDONS}) first"
        raise Unprocessable(_RECREATE_PLACE, why)
    change = vnf.change(asked, OperationType.HEAL, _senders(vnf, workload))
    return RecreateWorkloadDraft(**vars(change), workload=workload, parameters=vnf.record.internals.parameters)


def _senders(vnf: CnfUnderChange, workload: WorkloadInternals) -> dict[str, str]:
    """Return the scripts with which the package sends and withdraws the credentials, by their phase. Raises Unprocessable."""
    if workload.capi.sender != "package":
        return {}
    scripts = {**scripts_of(vnf.flavour, OperationType.INSTANTIATE), **scripts_of(vnf.flavour, OperationType.TERMINATE)}
    if INSTANTIATE_END not in scripts:
        why = f"the package sends the credentials, and maps no script to {INSTANTIATE_END} any more"
        raise Unprocessable(_RECREATE_PLACE, why)
    return {phase: file for phase, file in scripts.items() if phase in (INSTANTIATE_END, TERMINATE_START)}


def _machines(vnfc_ids: tuple[str, ...], vnf: CnfUnderChange, workload: WorkloadInternals) -> tuple[MachineFacts, ...]:
    """Return the Machines of VNFCs. Raises NotFound with all that are unknown (CR-118)."""
    names = resource_by_vnfc(vnf.info)
    machines = {each.name: each for each in workload.machines}
    unknown = [each for each in vnfc_ids if names.get(each) not in machines]
    if unknown:
        raise NotFound(f"vnfcInstanceId: the VNF has no VNFCs {', '.join(unknown)}")
    return tuple({name: machines[name] for name in (names[each] for each in vnfc_ids)}.values())
