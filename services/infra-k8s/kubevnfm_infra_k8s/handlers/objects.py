"""The handlers of commands about objects and management clusters, which share their ports and limits."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_infra_k8s.handlers.applying import ApplyHandlers
from kubevnfm_infra_k8s.handlers.changing import ChangeHandlers
from kubevnfm_infra_k8s.handlers.cluster_updates import ClusterUpdateHandlers
from kubevnfm_infra_k8s.handlers.deleting import DeletionHandlers
from kubevnfm_infra_k8s.handlers.links import LinkHandlers
from kubevnfm_infra_k8s.handlers.management import ManagementHandlers
from kubevnfm_infra_k8s.handlers.volumes import VolumeHandlers


@dataclass(frozen=True)
class ObjectHandlers(
    ApplyHandlers,
    ChangeHandlers,
    DeletionHandlers,
    LinkHandlers,
    VolumeHandlers,
    ClusterUpdateHandlers,
    ManagementHandlers,
):
    """Handles each command that needs no watches of workload clusters."""
