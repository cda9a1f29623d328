"""The objects of Cluster API that a scaling of a workload cluster changes (capi.md chapter 12)."""

from __future__ import annotations

from typing import Final

from kubevnfm_events.objects import ObjectCount
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.containers.scaling import counted, scaled_counts, scaling
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Levels
from kubevnfm_lcm_api.lifecycle.workloads.drafts import ScaleWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.leaving_machines import leaving_machines

_CONTROL_PLANE: Final = "KubeadmControlPlane"
_OWNERS: Final = (_CONTROL_PLANE, "MachineDeployment", "MachinePool")
_CONTROL_PLANE_PART: Final = "controlPlane"


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
    leaving = leaving_machines(vnf, workload, asked.request.additional_params, draft.vdu_counts)
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
