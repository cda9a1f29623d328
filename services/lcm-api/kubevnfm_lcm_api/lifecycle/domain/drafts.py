"""The drafts of instantiate and terminate: their facts while they run, and their result for the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, TypedDict

from kubevnfm_cluster import ClusterParameters, places_of_registries
from kubevnfm_events import CapiProviders, ClusterAccess, PackageRef, VimConnection
from kubevnfm_events.infra import HelmChart, LeftObject, StackResources, UserData, Variables, VduTarget
from kubevnfm_events.kuryr import KuryrNetwork
from kubevnfm_events.mgmt import PhaseDone, ScriptAnswer
from kubevnfm_events.vim import VimRegistered
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.lcm import InstantiationState, VnfInstance
from kubevnfm_sol.resources import InstantiatedVnfInfo, ResourceChanges, ScaleInfo
from kubevnfm_sol.vim import VimConnectionInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.domain import inventory
from kubevnfm_lcm_api.lifecycle.domain.cluster_vim import cluster_connection
from kubevnfm_lcm_api.lifecycle.domain.dependencies import Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.domain.granting import granted_zones, merged
from kubevnfm_lcm_api.lifecycle.domain.instance import (
    Deployment,
    InstanceInternals,
    InstanceRecord,
    Release,
    ReleaseDeployment,
    StackDeployment,
)
from kubevnfm_lcm_api.lifecycle.domain.registry_vnf import RegistryVnf
from kubevnfm_lcm_api.lifecycle.domain.releases import metadata_of_left, pods_without, with_management
from kubevnfm_lcm_api.lifecycle.domain.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.domain.steps.machines import INSTANTIATE_END


class InstantiateFields(TypedDict):
    """The fields that a request gives `InstantiateDraft`."""

    vnf_instance_id: str
    package: PackageRef
    vim_key: str
    vim: VimConnection
    vim_connections: dict[str, VimConnectionInfo]
    flavour_id: str
    instantiation_level_id: str | None
    api_version: Literal["v1", "v2"]
    parameters: SecretParams
    extensions: SecretParams
    vnf_configurable_properties: SecretParams
    localization_language: str | None
    scale_status: tuple[ScaleInfo, ...]
    max_scale_levels: tuple[ScaleInfo, ...]
    external_cps: dict[str, str]
    ext_virtual_links: tuple[dict[str, Any], ...]
    tasks: tuple[str, ...]
    remains_of: str | None


class InstantiateDraft(ScriptedDraft):
    """The common part of the instantiation of a VM-based VNF and of a CNF."""

    package: PackageRef
    vim_key: str
    """The entry of vimConnectionInfo for the VIM of the resources."""
    vim: VimConnection
    vim_connections: dict[str, VimConnectionInfo]
    """The instance's vimConnectionInfo, merged with the request's."""
    flavour_id: str
    instantiation_level_id: str | None = None
    api_version: Literal["v1", "v2"] = "v2"
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams."""
    extensions: SecretParams = Field(default_factory=dict)
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)
    localization_language: str | None = None
    scale_status: tuple[ScaleInfo, ...] = ()
    max_scale_levels: tuple[ScaleInfo, ...] = ()
    external_cps: dict[str, str] = Field(default_factory=dict)
    """Name of the external CP's descriptor by the internal CP (resource name) behind it."""
    ext_virtual_links: tuple[dict[str, Any], ...] = ()
    """ExtVirtualLinkData of the request, v2 form."""
    tasks: tuple[str, ...] = ()
    """The operations that the VNFD allows on the instance later, without terminate."""
    remains_of: str | None = None
    """A FAILED instantiate whose resources must be removed first."""

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The VIM, which another instance's cluster may be."""
        return (Provided("cluster", (self.vim.vim_id,)),) if self.vim.vim_id is not None else ()

    def _instantiated(
        self,
        instance: InstanceRecord,
        info: InstantiatedVnfInfo,
        deployment: Deployment,
        *,
        cluster_connections: Mapping[str, VimConnectionInfo] = {},
    ) -> InstanceRecord:
        """Return the instance with the attributes common to both kinds.

        ``cluster_connections``: the entry of vimConnectionInfo for the instance's own cluster.
        """
        vnf: VnfInstance = instance.vnf.model_copy(
            update={
                "instantiation_state": InstantiationState.INSTANTIATED,
                "instantiated_vnf_info": info,
                "vim_connection_info": {**self.vim_connections, **cluster_connections},
                "extensions": {**instance.vnf.extensions, **self.extensions},
                "vnf_configurable_properties": {
                    **instance.vnf.vnf_configurable_properties,
                    **self.vnf_configurable_properties,
                },
            }
        )
        # New internals, not the old ones changed: nothing of an earlier failed instantiate may remain in them.
        internals = InstanceInternals(
            secret_names=instance.internals.secret_names,
            current_operation=instance.internals.current_operation,
            deployments=(deployment,),
            parameters=self.parameters,
            instantiation_level_id=self.instantiation_level_id,
            api_version=self.api_version,
            external_cps=self.external_cps,
            tasks=self.tasks,
        )
        return instance.model_copy(update={"vnf": vnf, "internals": internals})

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """NOT_INSTANTIATED as before."""
        instance = instance.with_internals(registries=())
        # The remains of an earlier instantiate may still exist: `remove_remains` has no compensation that says so.
        return instance if self.remains_of is not None else instance.with_internals(vim_ids=(), management_vim_ids=())

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """NOT_INSTANTIATED, with a reference to the remains: DELETE or a new instantiate removes them (api.md 4.3)."""
        # The VIM stays in use, as the removal needs its access data.
        vim_ids = [*instance.internals.vim_ids, *([self.vim.vim_id] if self.vim.vim_id is not None else [])]
        # The removal of a cluster's remains pulls no images.
        return instance.with_internals(remains_of=occurrence_id, vim_ids=tuple(dict.fromkeys(vim_ids)), registries=())


class InstantiateVmDraft(InstantiateDraft):
    """Instantiating a VM-based VNF."""

    plan: ClassVar[str] = "instantiate_vm"

    stack_name: str
    request: SecretParams
    """InstantiateVnfRequest in the shape of the API version that it came by, for user data."""
    instance: SecretParams
    """VnfInstance in v2 form, for user data."""
    user_data: UserData | None = None
    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase, as the flavour maps them."""
    cluster_vim_name: str | None = None
    """The name under which the cluster is registered; None if this VNF is not a cluster."""
    cluster_parameters: ClusterParameters | None = None
    """None: this VNF is not a cluster, or version 0.1.0 accepted the request."""
    max_nodes: int | None = None
    """The most nodes that the cluster can have."""
    masters: int = 1
    """How many masters the cluster has."""
    registry: RegistryVnf | None = None
    """None: this VNF is not a private registry."""

    kuryr_network: KuryrNetwork | None = None
    """The network entities of a cluster with Kuryr, once they are found."""
    resources: StackResources | None = None
    cluster: ClusterAccess | None = None
    node_names: dict[str, str] = Field(default_factory=dict)
    wanted_vim_id: str | None = None
    """The id that a driver class of the package was given for the VIM that it has created; None: it has created none."""
    cluster_vim: VimRegistered | None = None

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The VIM, and the registries that the cluster pulls from, which may be other instances."""
        used = super().begins_use
        return (*used, Provided("registry", self._registries)) if self._registries else used

    @property
    def _registries(self) -> tuple[str, ...]:
        cluster = self.cluster_parameters
        return () if cluster is None else places_of_registries(cluster.private_registry_connection_info)

    @property
    def stacks(self) -> tuple[None, StackResources | None]:
        """No stack before, and the one that is made."""
        return None, self.resources

    @property
    def granted_zones(self) -> Mapping[str, tuple[str, ...]]:
        """By VDU, in the order of the GrantRequest's resources."""
        return granted_zones(self.grant, self.grant_request)

    def with_resources(self, resources: StackResources | None) -> Self:
        """Return the draft with what the stack holds now; None: it holds nothing."""
        named = None if resources is None else inventory.with_link_ports(resources, self.ext_virtual_links)
        return self.model_copy(update={"resources": named})

    def after_phase(self, reply: PhaseDone) -> Self:
        """Return the draft with what the driver's phase made known: a cluster's access data and its nodes."""
        if reply.cluster is None and not reply.node_names:
            return self
        return self.model_copy(update={"cluster": reply.cluster, "node_names": reply.node_names})

    @property
    def registers_vim(self) -> bool:
        """Whether a driver class has created a VIM that is to be registered."""
        return self.wanted_vim_id is not None

    @property
    def reads_admin(self) -> bool:
        """Whether a script has built the cluster that additionalParams describe, and has left no VIM for it."""
        if self.cluster_vim_name is None or INSTANTIATE_END in self.phases:
            return False
        entries = [edit.change.get("value") for edit in self.script_edits if edit.path[:1] == ("vimConnectionInfo",)]
        return not any(isinstance(one, Mapping) and "kubernetes" in str(one.get("vimType")).lower() for one in entries)

    def with_script(self, answer: ScriptAnswer) -> Self:
        """Return the draft with what a script has answered, and with the VIM that a driver class has created."""
        draft, vim = super().with_script(answer), answer.vim
        if vim is None:
            return draft
        update = {"cluster": vim.access, "cluster_vim_name": vim.name, "wanted_vim_id": vim.vim_id}
        return draft.model_copy(update=update)

    def with_kuryr_network(self, network: KuryrNetwork) -> Self:
        """Return the draft with the network entities of a cluster with Kuryr."""
        return self.model_copy(update={"kuryr_network": network})

    def with_cluster_vim(self, vim: VimRegistered) -> Self:
        """Return the draft with the VIM that the cluster was registered as."""
        return self.model_copy(update={"cluster_vim": vim})

    def changes(self) -> ResourceChanges:
        """Everything that the stack holds was added."""
        if self.resources is None:
            return ResourceChanges()
        return inventory.changes_of_stack(
            self.resources, vnfd_id=self.package.vnfd_id, vim_key=self.vim_key, change="ADDED"
        )

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """INSTANTIATED, with its resources and, for a cluster, its own entry of vimConnectionInfo."""
        assert self.resources is not None
        info = inventory.info_of_stack(
            self.resources,
            vnfd_id=self.package.vnfd_id,
            vim_key=self.vim_key,
            flavour_id=self.flavour_id,
            scale_status=self.scale_status,
            max_scale_levels=self.max_scale_levels,
            external_cps=self.external_cps,
            ext_virtual_links=self.ext_virtual_links,
            ext_managed_links=self._ext_managed_links,
            node_names=self.node_names,
        ).model_copy(
            update={"additional_params": self.parameters or None, "localization_language": self.localization_language}
        )
        more: dict[str, VimConnectionInfo] = {}
        if self.cluster is not None and self.cluster_vim is not None and self.cluster_vim_name is not None:
            more[self.cluster_vim_name] = cluster_connection(self.vnf_instance_id, self.cluster, self.cluster_vim)
        deployment = StackDeployment(
            kind="stack", vim_key=self.vim_key, stack_name=self.stack_name, resources=self.resources
        )
        return self._instantiated(instance, info, deployment, cluster_connections=more).with_internals(
            phases=self.phases,
            user_data=self.user_data,
            request=self.request,
            connections={
                "extVirtualLinks": list(self.ext_virtual_links),
                "extManagedVirtualLinks": self._ext_managed_links,
            },
            cluster_vim_id=self.cluster_vim.vim_id if self.cluster_vim else None,
            cluster_vim_key=self.cluster_vim_name if self.cluster_vim else None,
            registries=self._registries,
            own_registry=self.registry.places(self.resources) if self.registry is not None else (),
        )

    @property
    def _ext_managed_links(self) -> list[dict[str, Any]]:
        return merged(
            self.request.get("extManagedVirtualLinks") or (),
            self.grant.get("extManagedVirtualLinks") or (),
            "vnfVirtualLinkDescId",
        )


class InstantiateCnfDraft(InstantiateDraft):
    """Instantiating a CNF on a Kubernetes VIM."""

    plan: ClassVar[str] = "instantiate_cnf"

    def_files: tuple[str, ...]
    chart: HelmChart | None = None
    namespace: str | None = None
    multi_namespace: bool = False
    adopt: bool = False
    vdus: tuple[VduTarget, ...] = ()
    wait_timeout_s: float | None = None
    variables: Variables | None = None
    """The values of placeholders in the manifests; None: they have none."""
    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase, as far as mgmt-executor runs it."""

    release: Release | None = None

    @property
    def stacks(self) -> tuple[None, None]:
        """Containers have no stack."""
        return None, None

    @property
    def is_forceful(self) -> bool:
        """Only a termination is."""
        return False

    @property
    def providers(self) -> CapiProviders | None:
        """The providers of Cluster API that the CNF has installed."""
        return self.release.providers if self.release is not None else None

    @property
    def providers_before(self) -> None:
        """None: the CNF is new."""

    def with_release(self, release: Release | None) -> Self:
        """Return the draft with the applied objects; None: there are none."""
        return self.model_copy(update={"release": release})

    def changes(self) -> ResourceChanges:
        """Every pod was added."""
        if self.release is None:
            return ResourceChanges()
        return inventory.changes_of_release(
            self.release, vnfd_id=self.package.vnfd_id, vim_key=self.vim_key, change="ADDED"
        )

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """INSTANTIATED, one VNFC a pod."""
        assert self.release is not None
        info = inventory.info_of_release(
            self.release,
            vnfd_id=self.package.vnfd_id,
            vim_key=self.vim_key,
            flavour_id=self.flavour_id,
            scale_status=self.scale_status,
            max_scale_levels=self.max_scale_levels,
            def_files=self.def_files,
        ).model_copy(
            update={"additional_params": self.parameters or None, "localization_language": self.localization_language}
        )
        deployment = ReleaseDeployment(kind="release", vim_key=self.vim_key, release=self.release)
        done = self._instantiated(instance, info, deployment).with_internals(phases=self.phases)
        return with_management(done, self.release, self.vim_id)


class TerminateFields(TypedDict):
    """The fields that a request gives `TerminateDraft`."""

    vnf_instance_id: str
    vnfd_id: str
    package: PackageRef
    vim_key: str
    vim: VimConnection
    is_forceful: bool
    graceful_wait_s: float


class TerminateDraft(ScriptedDraft):
    """The common part of the termination of a VM-based VNF and of a CNF."""

    vnfd_id: str
    package: PackageRef | None = None
    """None: version 0.1.0 accepted the request, for a CNF."""
    vim_key: str
    vim: VimConnection
    is_forceful: bool
    graceful_wait_s: float = 0.0
    is_gone: bool = False
    """Whether the infrastructure reported that nothing is left."""
    has_scripts: bool = False
    """Whether the VNFD maps phases of any operation to scripts: mgmt-executor has records of their runs then."""

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """NOT_INSTANTIATED, vimConnectionInfo empty (SOL003 5.4.8; sequences.md A9)."""
        # The claim stays until the engine releases the instance in the same write.
        before = instance.internals
        internals = InstanceInternals(current_operation=before.current_operation, secret_names=before.secret_names)
        vnf = instance.vnf.model_copy(
            update={
                "instantiation_state": InstantiationState.NOT_INSTANTIATED,
                "instantiated_vnf_info": None,
                "vim_connection_info": {},
            }
        )
        return instance.model_copy(update={"vnf": vnf, "internals": internals})


class TerminateVmDraft(TerminateDraft):
    """Terminating a VM-based VNF."""

    plan: ClassVar[str] = "terminate_vm"

    stack_name: str
    package: PackageRef
    resources: StackResources | None = None
    is_stack_missing: bool = False
    """The stack was deleted by hand, so no phase can run on its machines."""
    phases: dict[str, str] = Field(default_factory=dict)
    parameters: SecretParams = Field(default_factory=dict)
    cluster_vim_key: str | None = None
    cluster_vim_id: str | None = None
    """The VIM that the cluster is registered as; None also if version 0.1.0 accepted the request."""
    own_registry: tuple[str, ...] = ()
    """Where the private registry that it is answers."""
    max_nodes: int | None = None

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The cluster, which CNFs may run on, or the registry, which clusters may pull from."""
        if self.own_registry:
            return Withdrawn(Provided("registry", self.own_registry), is_forced=self.is_forceful)
        if self.cluster_vim_id is None:
            return None
        return Withdrawn(Provided("cluster", (self.cluster_vim_id,)), is_forced=self.is_forceful)

    @property
    def stacks(self) -> tuple[StackResources | None, StackResources | None]:
        """The stack, until it is deleted; none if it is missing, since its addresses may belong to others by now."""
        return None if self.is_stack_missing else self.resources, None if self.is_gone else self.resources

    @property
    def cluster_parameters(self) -> None:
        """A termination has only what the instance stores: additionalParams."""

    @property
    def granted_zones(self) -> Mapping[str, tuple[str, ...]]:
        """A termination adds no machines, so no zones are granted."""
        return {}

    def without_stack(self) -> Self:
        """Return the draft once nothing is left of the stack."""
        return self.model_copy(update={"is_gone": True})

    def after_phase(self, reply: PhaseDone) -> Self:
        """Return the draft unchanged: a phase before the deletion reports no facts that outlive it."""
        return self

    def changes(self) -> ResourceChanges:
        """All resources of the stack are removed once it is deleted."""
        if self.resources is None or not self.is_gone:
            return ResourceChanges()
        return inventory.changes_of_stack(self.resources, vnfd_id=self.vnfd_id, vim_key=self.vim_key, change="REMOVED")


class TerminateCnfDraft(TerminateDraft):
    """Terminating a CNF."""

    plan: ClassVar[str] = "terminate_cnf"

    release: Release | None = None
    phases: dict[str, str] = Field(default_factory=dict)
    parameters: SecretParams = Field(default_factory=dict)
    left: tuple[LeftObject, ...] = ()
    """The objects that may still exist, because the termination gave up on their cluster or removed their finalizers."""
    force_remove_finalizers: bool = False
    """Whether finalizers that hold the deletion are removed (capi.md CR-109)."""
    is_management: bool = False
    """Whether its objects are providers of Cluster API."""
    orphans: tuple[LeftObject, ...] = ()
    """The Clusters that lose their controllers, with what belongs to them."""

    @property
    def stacks(self) -> tuple[None, None]:
        """Containers have no stack."""
        return None, None

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The management cluster, which workload clusters of other instances need (capi.md CR-043)."""
        if not self.is_management or self.vim_id is None:
            return None
        return Withdrawn(Provided("management", (self.vim_id,)), is_forced=self.is_forceful)

    @property
    def providers(self) -> None:
        """None are left at the end."""

    @property
    def providers_before(self) -> CapiProviders | None:
        """The providers of Cluster API that the CNF has installed."""
        return self.release.providers if self.release is not None else None

    def with_orphans(self, orphans: tuple[LeftObject, ...]) -> Self:
        """Return the draft with the Clusters that lose their controllers."""
        return self.model_copy(update={"orphans": orphans})

    def without_release(self, left: tuple[LeftObject, ...]) -> Self:
        """Return the draft once the release is deleted, except what is left."""
        return self.model_copy(update={"is_gone": True, "left": left})

    def changes(self) -> ResourceChanges:
        """All VNFCs are removed once the objects are deleted; those that may still run are not."""
        if not self.is_gone:
            return ResourceChanges()
        pods = pods_without(self.left, self.release)
        removed = inventory.changes_of_pods({"REMOVED": pods}, vnfd_id=self.vnfd_id, vim_key=self.vim_key)
        return removed.model_copy(update={"metadata": metadata_of_left((*self.orphans, *self.left))})
