"""The controllers of a cluster: small, driven by changes only, and safe to run on their object at any time."""

from __future__ import annotations

from kubevnfm_lab.kubernetes.controllers.accounts import AccountSecrets
from kubevnfm_lab.kubernetes.controllers.capi import capi_controllers
from kubevnfm_lab.kubernetes.controllers.capi.workloads import WorkloadLabs
from kubevnfm_lab.kubernetes.controllers.certificates import Certificates, Issuers
from kubevnfm_lab.kubernetes.controllers.daemonsets import DaemonSets
from kubevnfm_lab.kubernetes.controllers.definitions import Definitions
from kubevnfm_lab.kubernetes.controllers.deployments import Deployments
from kubevnfm_lab.kubernetes.controllers.endpoints import Services
from kubevnfm_lab.kubernetes.controllers.garbage import GarbageCollector
from kubevnfm_lab.kubernetes.controllers.jobs import Jobs
from kubevnfm_lab.kubernetes.controllers.kubelet import Kubelet
from kubevnfm_lab.kubernetes.controllers.kubevirt import kubevirt_controllers
from kubevnfm_lab.kubernetes.controllers.namespaces import Namespaces
from kubevnfm_lab.kubernetes.controllers.nodes import Nodes
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane
from kubevnfm_lab.kubernetes.controllers.policies import ApiServices, Autoscalers, Budgets
from kubevnfm_lab.kubernetes.controllers.replicasets import ReplicaSets
from kubevnfm_lab.kubernetes.controllers.scheduler import Scheduler
from kubevnfm_lab.kubernetes.controllers.statefulsets import StatefulSets
from kubevnfm_lab.kubernetes.controllers.volumes import Claims, Volumes
from kubevnfm_lab.kubernetes.tokens import Tokens
from kubevnfm_lab.ports import Faults, Ledger


def all_controllers(
    plane: ControlPlane,
    *,
    tokens: Tokens,
    ca_pem: str,
    pod_cidr: str,
    has_network: bool,
    clusters: WorkloadLabs | None,
    faults: Faults,
    ledger: Ledger,
) -> None:
    """Register every controller with the control plane; ``clusters``: starts the workload clusters of Cluster API."""
    GarbageCollector(plane)
    for controller in (
        Namespaces(plane),
        Definitions(plane),
        AccountSecrets(plane, tokens, ca_pem=ca_pem),
        Nodes(plane, has_network=has_network),
        Claims(plane),
        Volumes(plane),
        Deployments(plane),
        ReplicaSets(plane),
        StatefulSets(plane),
        DaemonSets(plane),
        Jobs(plane),
        Services(plane),
        Budgets(plane),
        Autoscalers(plane),
        ApiServices(plane),
        Issuers(plane),
        Certificates(plane),
        Scheduler(plane),
        Kubelet(plane, pod_cidr=pod_cidr, faults=faults, ledger=ledger),
    ):
        plane.add(controller)
    kubevirt_controllers(plane)
    if clusters is not None:
        capi_controllers(plane, clusters, faults)
