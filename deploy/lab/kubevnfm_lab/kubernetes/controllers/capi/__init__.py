"""A stand-in for the controllers of Cluster API and its OpenStack provider.

It works wherever the CRDs of Cluster API are served, in either version: a Cluster becomes a lab cluster with an API server of
its own, step by step and with the conditions of both contracts. The objects follow docs/specification/capi.md, chapters 5 to
9, 12, 14 and 15. Faults of part ``capi`` fail ``provision <Cluster>`` and ``boot <Machine>``; with status 422 for good.
"""

from __future__ import annotations

from kubevnfm_lab.kubernetes.controllers.capi.clusters import CapiClusters
from kubevnfm_lab.kubernetes.controllers.capi.control_planes import ControlPlanes
from kubevnfm_lab.kubernetes.controllers.capi.health_checks import HealthChecks
from kubevnfm_lab.kubernetes.controllers.capi.infrastructure import OpenStackClusters
from kubevnfm_lab.kubernetes.controllers.capi.machines import Machines
from kubevnfm_lab.kubernetes.controllers.capi.sets import MachineDeployments, MachineSets
from kubevnfm_lab.kubernetes.controllers.capi.topology import Topologies
from kubevnfm_lab.kubernetes.controllers.capi.workloads import WorkloadLabs, Workloads
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane
from kubevnfm_lab.ports import Faults


def capi_controllers(plane: ControlPlane, clusters: WorkloadLabs, faults: Faults) -> None:
    """Register the controllers with the control plane; ``clusters`` starts the workload clusters."""
    workloads = Workloads(clusters)
    for controller in (
        CapiClusters(plane, workloads),
        Topologies(plane),
        OpenStackClusters(plane, workloads, faults),
        ControlPlanes(plane, workloads),
        MachineDeployments(plane),
        MachineSets(plane),
        HealthChecks(plane),
        Machines(plane, workloads, faults),
    ):
        plane.add(controller)
