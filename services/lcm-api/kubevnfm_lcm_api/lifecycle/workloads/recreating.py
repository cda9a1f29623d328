"""The draft of a heal that deletes a workload cluster and builds it again, and its result for the instance (CR-117)."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_events.capi import MachineFacts
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.vim import VimRegistered

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft
from kubevnfm_lcm_api.lifecycle.core.dependencies import HEAL_ADVICE, Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals
from kubevnfm_lcm_api.lifecycle.workloads.drafts import (
    ChangeWorkloadDraft,
    InstantiateWorkloadDraft,
    cluster_in,
    showing_vim,
    uid_in,
)


class RecreateWorkloadDraft(ChangeWorkloadDraft, HealCnfDraft):
    """HEAL of a workload cluster: all of it is deleted, and instantiated again at its scale level."""

    plan: ClassVar[str] = "recreate_workload"

    is_whole: bool = True
    workload_vim: VimRegistered | None = None
    """The VIM, once it has the access data of the new cluster."""

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The cluster: nothing of the CNFs on it would be left."""
        if self.workload.vim_id is None:
            return None
        return Withdrawn(Provided("cluster", (self.workload.vim_id,)), is_forced=False, advice=HEAL_ADVICE)

    @property
    def cluster_name(self) -> str:
        """The Cluster among the objects."""
        return self.workload.cluster.name

    @property
    def openstack_vim_id(self) -> str | None:
        """The registered OpenStack of the machines, if the files have no Secret for it."""
        return self.workload.capi.openstack_vim_id

    @property
    def workload_cluster(self) -> WorkloadCluster:
        """The new Cluster object; the earlier one until that is applied."""
        return cluster_in(self.release, self.cluster_name) or self.workload.cluster

    @property
    def cluster_uid(self) -> str | None:
        """The uid of the new Cluster object; None until it was applied."""
        return uid_in(self.release, self.workload_cluster)

    def with_workload_vim(self, vim: VimRegistered) -> Self:
        """Return the draft with the VIM of the new cluster."""
        return self.model_copy(update={"workload_vim": vim})

    @property
    def present_machines(self) -> tuple[MachineFacts, ...] | None:
        """The Machines that were reported last; none between the deletion and the new cluster."""
        return () if self.is_gone and self.reached is None else super().present_machines

    @property
    def workload_now(self) -> WorkloadInternals:
        """The cluster with the credentials that a termination has to withdraw."""
        return self.workload.model_copy(update={"cluster": self.workload_cluster})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its new Machines, and the VIM with its new endpoint."""
        return showing_vim(super().completed(instance), self.workload_vim)


NewClusterDraft = InstantiateWorkloadDraft | RecreateWorkloadDraft
"""An operation that builds a workload cluster."""
