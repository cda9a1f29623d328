"""The objects of Cluster API that a scaling of a workload cluster changes (capi.md chapter 12)."""

from __future__ import annotations

from typing import Final

from kubevnfm_events.infra import ObjectCount, ObjectFacts
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange

_CONTROL_PLANE: Final = "KubeadmControlPlane"
_OWNERS: Final = (_CONTROL_PLANE, "MachineDeployment", "MachinePool")
_CONTROL_PLANE_PART: Final = "controlPlane"


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


def counted(one: ObjectFacts, *, topology: str | None = None) -> ObjectCount:
    """Return the object to scale, without a count; ``topology``: the part of it that has the number."""
    return ObjectCount(
        api_version=one.api_version, kind=one.kind, namespace=one.namespace, name=one.name, count=0, topology=topology
    )
