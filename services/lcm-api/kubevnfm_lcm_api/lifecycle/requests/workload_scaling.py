"""The objects of Cluster API that a scaling of a workload cluster changes (capi.md chapter 12)."""

from __future__ import annotations

from typing import Final

from kubevnfm_events.infra import ObjectFacts
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.requests.cnf_under_change import CnfUnderChange

_CONTROL_PLANE: Final = "KubeadmControlPlane"
_OWNERS: Final = (_CONTROL_PLANE, "MachineDeployment", "MachinePool")


def owner_of_machines(vnf: CnfUnderChange, vdu_id: str, wanted: int, place: str) -> ObjectFacts:
    """Return the object whose replicas are the Machines of a VDU.

    Raises: Unprocessable if the files have none, as those of a cluster with ``spec.topology``, and for a number of
    control plane machines with which etcd has no useful majority (CR-088).
    """
    name = next(target.name for target in vnf.targets if target.vdu_id == vdu_id)
    for one in vnf.release.objects:
        if one.name == name and one.kind in _OWNERS and one.api_version.partition("/")[0].endswith(".x-k8s.io"):
            if one.kind == _CONTROL_PLANE and wanted % 2 == 0:
                why = f"leads to {wanted} machines of the {_CONTROL_PLANE} {name}; an odd number expected, because of etcd"
                raise Unprocessable(place, why)
            return one
    raise Unprocessable(
        place,
        f"the files of VDU {vdu_id} have no {', '.join(_OWNERS)} named {name}; the numbers of a Cluster with "
        "spec.topology cannot be scaled",
    )
