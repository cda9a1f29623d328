"""The objects of Cluster API that a scaling of a workload cluster changes (capi.md chapter 12), and the Machines that leave first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_events.objects import ObjectCount, ObjectFacts
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.lcm import ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.containers.scaling import LEAVING, counted, scaled_counts, scaling
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Levels
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_by_vnfc
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals
from kubevnfm_lcm_api.lifecycle.workloads.drafts import ScaleWorkloadDraft

_CONTROL_PLANE: Final = "KubeadmControlPlane"
_OWNERS: Final = (_CONTROL_PLANE, "MachineDeployment", "MachinePool")
_CONTROL_PLANE_PART: Final = "controlPlane"
_LEAVING_PLACE: Final = f"additionalParams/{LEAVING}"


def scaled_workload(
    vnf: CnfUnderChange, levels: Levels, asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest]
) -> ScaleWorkloadDraft:
    """Return the draft of a scaling to these levels. Raises InvalidInput, Unprocessable naming the attribute; Drifted."""
    workload = vnf.record.internals.workload
    assert workload is not None
    present, wanted, vdu_ids = scaled_counts(vnf, levels, asked.request)
    changed = sorted(vdu_id for vdu_id in vdu_ids if wanted[vdu_id] != present[vdu_id])
    objects = [(owner_of_machines(vnf, vdu_id, levels.place), vdu_id) for vdu_id in changed]
    for one, vdu_id in objects:
        check_majority(one, wanted[vdu_id], levels.place)
    draft = scaling(vnf, levels, asked, objects)
    leaving = _leaving_machines(vnf, workload, asked.request.additional_params, draft.vdu_counts)
    return ScaleWorkloadDraft(**vars(draft), workload=workload, leaving=leaving)


def owner_of_machines(vnf: CnfUnderChange, vdu_id: str, place: str) -> ObjectCount:
    """Return the object whose replicas are the Machines of a VDU, or the part of a Cluster's topology, without a count.

    Raises Unprocessable if the files of the cluster have neither.
    """
    name = next(target.name for target in vnf.targets if target.vdu_id == vdu_id)
    for one in vnf.release.objects:
        if vdu_id in one.topology_vdus:
            return counted(one, topology=name)
        if one.name == name and one.kind in _OWNERS and one.api_version.partition("/")[0].endswith(".x-k8s.io"):
            return counted(one)
    raise Unprocessable(
        place,
        f"the files of VDU {vdu_id} have no {', '.join(_OWNERS)} named {name}, and no Cluster whose spec.topology has it",
    )


def check_majority(one: ObjectCount, wanted: int, place: str) -> None:
    """Raise Unprocessable for a number of control plane machines with which etcd has no useful majority (CR-088)."""
    if one.topology != _CONTROL_PLANE_PART and one.kind != _CONTROL_PLANE:
        return
    if wanted % 2 == 0:
        named = f"the topology of Cluster {one.name}" if one.topology else f"the {_CONTROL_PLANE} {one.name}"
        why = f"leads to {wanted} machines of the control plane ({named}); an odd number expected, because of etcd"
        raise Unprocessable(place, why)


def _leaving_machines(
    vnf: CnfUnderChange,
    workload: WorkloadInternals,
    parameters: Mapping[str, Any],
    differences: Mapping[str, int],
) -> tuple[ObjectFacts, ...]:
    """Return the Machines that ``additionalParams.vnfc_instance_ids`` has a scaling remove first (CR-090).

    ``differences``: of the numbers of VNFCs, by VDU. Raises: InvalidInput for a malformed list and unknown VNFCs;
    Unprocessable for VNFCs of a VDU that loses fewer.
    """
    given = parameters.get(LEAVING)
    if given is None:
        return ()
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise InvalidInput(_LEAVING_PLACE, "a list of the ids of VNFCs expected")
    names, machines = resource_by_vnfc(vnf.info), {each.name: each for each in workload.machines}
    for index, vnfc_id in enumerate(given):
        if names.get(vnfc_id) not in machines:
            raise InvalidInput(f"{_LEAVING_PLACE}[{index}]", f"the VNF has no VNFC {vnfc_id}")
    chosen = [machines[name] for name in dict.fromkeys(names[each] for each in given)]
    for vdu_id, count in Counter(each.vdu_id for each in chosen).items():
        leave = max(0, -differences.get(vdu_id or "", 0))
        if count > leave:
            raise Unprocessable(_LEAVING_PLACE, f"names {count} VNFCs of VDU {vdu_id}, of which {leave} leave")
    return tuple(
        ObjectFacts(
            api_version=workload.cluster.api_version,
            kind="Machine",
            namespace=each.namespace,
            name=each.name,
            uid=each.uid,
        )
        for each in chosen
    )
