"""The drafts of a workload cluster's instantiation, changes and termination, and their result for the instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from kubevnfm_csar.capi_providers import CORE
from kubevnfm_events.capi import ClusterReached, MachineFacts
from kubevnfm_events.credentials import CredentialsSent, WorkloadCluster
from kubevnfm_events.objects import ObjectFacts, PodFacts
from kubevnfm_events.vim import VimRegistered
from kubevnfm_sol.resources import VnfcResourceInfo

from kubevnfm_lcm_api.lifecycle.containers.changing import ChangeCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.releases import showing
from kubevnfm_lcm_api.lifecycle.core.dependencies import Kind, Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import (
    WORKLOAD,
    WORKLOAD_VIM_ID,
    CapiParameters,
    WorkloadInternals,
    workload_connection,
)


class InstantiateWorkloadDraft(InstantiateCnfDraft):
    """Instantiating a workload cluster on a management cluster."""

    plan: ClassVar[str] = "instantiate_workload"

    capi: CapiParameters

    reached: ClusterReached | None = None
    """How far the cluster was when it was awaited last."""
    credentials_sent: CredentialsSent | None = None
    workload_vim: VimRegistered | None = None

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The VIM, and the providers of Cluster API there, which other instances may be; the OpenStack of the machines."""
        kinds: tuple[tuple[Kind, str | None], ...] = (
            ("management", self.vim.vim_id),
            ("cluster", self.openstack_vim_id),
        )
        return (*super().begins_use, *(Provided(kind, (vim_id,)) for kind, vim_id in kinds if vim_id is not None))

    @property
    def vnfd_id(self) -> str:
        """For the call-back."""
        return self.package.vnfd_id

    @property
    def openstack_vim_id(self) -> str | None:
        """The registered OpenStack of the machines, if the files have no Secret for it."""
        return self.capi.openstack_vim_id

    @property
    def cluster_name(self) -> str | None:
        """The Cluster that the request names."""
        return self.capi.cluster_name

    @property
    def workload_cluster(self) -> WorkloadCluster | None:
        """The Cluster object; None until the manifests were applied."""
        return cluster_in(self.release, self.capi.cluster_name)

    @property
    def cluster_uid(self) -> str | None:
        """The uid of the Cluster object; None until the manifests were applied."""
        return uid_in(self.release, self.workload_cluster)

    def with_reached(self, reached: ClusterReached) -> Self:
        """Return the draft with the Machines, which are the VNFCs."""
        release = self.release.model_copy(update={"pods": vnfcs_of(reached.machines)}) if self.release else None
        return self.model_copy(update={"reached": reached, "release": release})

    def with_credentials_sent(self, sent: CredentialsSent | None) -> Self:
        """Return the draft with what the receiver has accepted; None: it was erased."""
        return self.model_copy(update={"credentials_sent": sent})

    def with_workload_vim(self, vim: VimRegistered) -> Self:
        """Return the draft with the VIM of the workload cluster."""
        return self.model_copy(update={"workload_vim": vim})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """INSTANTIATED: one VNFC a Machine, and the VIM that the cluster has become (CR-050, CR-083)."""
        done = super().completed(instance)
        cluster, reached = self.workload_cluster, self.reached
        assert cluster is not None
        assert reached is not None
        vim = self.workload_vim
        internals = WorkloadInternals(
            capi=self.capi,
            cluster=cluster,
            credentials=self.credentials_sent,
            vim_id=vim.vim_id if vim is not None else None,
            machines=reached.machines,
            vdus=self.vdus,
        )
        return showing_vim(showing_machines(done, internals), vim)


class ChangeWorkloadDraft(ChangeCnfDraft):
    """The common part of changes of a workload cluster: its VNFCs are Machines, and its VIM stays as it is (CR-092)."""

    workload: WorkloadInternals
    """The cluster as it was stored last."""

    reached: ClusterReached | None = None
    """The Machines that were reported last."""

    @property
    def workload_cluster(self) -> WorkloadCluster:
        """The Cluster object."""
        return self.workload.cluster

    @property
    def vnfd_id(self) -> str:
        """For the call-back."""
        return self.package.vnfd_id

    @property
    def credentials_sent(self) -> CredentialsSent | None:
        """The facts of what was sent last."""
        return self.workload.credentials

    def with_credentials_sent(self, sent: CredentialsSent | None) -> Self:
        """Return the draft with the facts of what was sent last."""
        return self.model_copy(update={"workload": self.workload.model_copy(update={"credentials": sent})})

    def with_reached(self, reached: ClusterReached) -> Self:
        """Return the draft with the Machines, which are the VNFCs."""
        release = (self.release or self.before).model_copy(update={"pods": vnfcs_of(reached.machines)})
        return self.model_copy(update={"reached": reached, "release": release})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its present Machines."""
        return self._with_machines(super().completed(instance), self.workload_then)

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the Machines that are left after the reversal."""
        return self._with_machines(super().rolled_back(instance), self.workload)

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance with the Machines that were reported last."""
        return self._with_machines(super().failed(instance, occurrence_id), self.workload_now)

    @property
    def present_machines(self) -> tuple[MachineFacts, ...] | None:
        """The Machines that were reported last; None: none yet."""
        return self.reached.machines if self.reached is not None else None

    @property
    def workload_now(self) -> WorkloadInternals:
        """The cluster as far as the operation has come, but for its Machines."""
        return self.workload

    @property
    def workload_then(self) -> WorkloadInternals:
        """The cluster as it is once the operation is COMPLETED, but for its Machines."""
        return self.workload_now

    def _with_machines(self, instance: InstanceRecord, workload: WorkloadInternals) -> InstanceRecord:
        machines = self.present_machines
        if machines is None:
            return instance
        return showing_machines(instance, workload.model_copy(update={"machines": machines, "vdus": self.vdus}))


class ScaleWorkloadDraft(ChangeWorkloadDraft, ScaleCnfDraft):
    """SCALE, SCALE_TO_LEVEL of a workload cluster."""

    plan: ClassVar[str] = "scale_workload"

    leaving: tuple[ObjectFacts, ...] = ()
    """The Machines that a scale in removes first (CR-090); Cluster API chooses the others."""


class RollOutWorkloadDraft(ChangeWorkloadDraft):
    """CHANGE_VNFPKG or HEAL that changes nothing but the Machines: each is replaced by another one (CR-103, CR-117)."""

    plan: ClassVar[str] = "roll_out_workload"
    is_reversible: ClassVar[bool] = False
    """A deleted Machine cannot be restored."""

    roll_out_after: str
    """RFC 3339: Machines that were made before it are replaced."""
    is_heal: bool = False
    """Whether the cluster may be broken now."""

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its new Machines."""
        return super().completed(showing(instance, self.release, self.package, self.vim_key, self.def_files))


class TerminateWorkloadDraft(TerminateCnfDraft):
    """Terminating a workload cluster."""

    plan: ClassVar[str] = "terminate_workload"

    workload: WorkloadInternals
    credentials_sent: CredentialsSent | None = None

    @property
    def workload_cluster(self) -> WorkloadCluster:
        """The Cluster object."""
        return self.workload.cluster

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The cluster, which CNFs may run on (CR-104)."""
        if self.workload.vim_id is None:
            return None
        return Withdrawn(Provided("cluster", (self.workload.vim_id,)), is_forced=self.is_forceful)

    def with_credentials_sent(self, sent: CredentialsSent | None) -> Self:
        """Return the draft with what the receiver has; None: it has erased them."""
        return self.model_copy(update={"credentials_sent": sent})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """NOT_INSTANTIATED; the VIM of the cluster no longer exists."""
        done = super().completed(instance)
        metadata = {name: value for name, value in (done.vnf.metadata or {}).items() if name != WORKLOAD_VIM_ID}
        return done.with_vnf(metadata=metadata)


WorkloadDraft = InstantiateWorkloadDraft | ChangeWorkloadDraft | TerminateWorkloadDraft
"""An operation on a workload cluster; its VIM is the management cluster."""


def showing_vim(instance: InstanceRecord, vim: VimRegistered | None) -> InstanceRecord:
    """Return the instance with the VIM that its cluster has become; unchanged if it has become none (CR-083)."""
    if vim is None:
        return instance
    return instance.with_vnf(
        vim_connection_info={**instance.vnf.vim_connection_info, WORKLOAD: workload_connection(vim)},
        metadata={**(instance.vnf.metadata or {}), WORKLOAD_VIM_ID: vim.vim_id},
    ).with_internals(cluster_vim_id=vim.vim_id)


def cluster_in(release: Release | None, name: str | None) -> WorkloadCluster | None:
    """Return the Cluster among the objects of a release; ``name``: which one, None for the only one."""
    for each in _clusters(release):
        if name in (None, each.name):
            return WorkloadCluster(name=each.name, namespace=each.namespace or "default", api_version=each.api_version)
    return None


def uid_in(release: Release | None, cluster: WorkloadCluster | None) -> str | None:
    """Return the uid of a Cluster among the objects of a release; None: not known."""
    return next((each.uid or None for each in _clusters(release) if cluster and each.name == cluster.name), None)


def _clusters(release: Release | None) -> Iterator[ObjectFacts]:
    for each in release.objects if release is not None else ():
        if each.kind == "Cluster" and each.api_version.startswith(f"{CORE}/"):
            yield each


def showing_machines(instance: InstanceRecord, workload: WorkloadInternals) -> InstanceRecord:
    """Return the instance with the facts of its cluster, and its VNFCs described by their Machines (CR-050)."""
    info = instance.vnf.instantiated_vnf_info
    assert info is not None
    facts = {each.name: each for each in workload.machines}

    def described(one: VnfcResourceInfo) -> VnfcResourceInfo:
        machine = facts[one.id]
        more = {"providerId": machine.provider_id, "version": machine.version, "addresses": list(machine.addresses)}
        metadata = {**(one.metadata or {}), **{name: value for name, value in more.items() if value}}
        return one.model_copy(update={"metadata": metadata})

    vnfcs = tuple(described(one) for one in info.vnfc_resource_info)
    shown = instance.with_internals(workload=workload)
    return shown.with_vnf(instantiated_vnf_info=info.model_copy(update={"vnfc_resource_info": vnfcs}))


def vnfcs_of(machines: tuple[MachineFacts, ...]) -> tuple[PodFacts, ...]:
    """Return the Machines of VDUs in the form in which a release names VNFCs (CR-050)."""
    return tuple(
        PodFacts(
            vdu_id=each.vdu_id,
            name=each.name,
            namespace=each.namespace,
            uid=each.uid,
            owner_kind=each.owner_kind,
            node=each.node,
            addresses=each.addresses,
        )
        for each in machines
        if each.vdu_id is not None
    )
