"""The drafts of instantiate and terminate: their facts while they run, and their result for the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_cluster.registries import places_of_registries
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import ClusterAccess, PackageRef
from kubevnfm_events.kuryr import KuryrNetwork
from kubevnfm_events.mgmt import INSTANTIATE_END, PhaseDone, ScriptAnswer
from kubevnfm_events.stacks import StackResources
from kubevnfm_events.vim import VimRegistered
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.resources import ResourceChanges
from kubevnfm_sol.vim import VimConnectionInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, existing, removed_servers
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable, granted_zones, merged
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.machines import inventory
from kubevnfm_lcm_api.lifecycle.machines.cluster_vim import cluster_connection
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName, has_kuryr, role_name
from kubevnfm_lcm_api.lifecycle.machines.order import StackDraft
from kubevnfm_lcm_api.lifecycle.machines.registry_vnf import RegistryVnf


class InstantiateVmDraft(InstantiateDraft, StackDraft):
    """Instantiating a VM-based VNF."""

    plan: ClassVar[str] = "instantiate_vm"

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
    cluster: ClusterAccess | None = None
    node_names: dict[str, str] = Field(default_factory=dict)
    wanted_vim_id: str | None = None
    """The id that a driver class of the package was given for the VIM that it has created; None: it has created none."""
    cluster_vim: VimRegistered | None = None

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The registries that the cluster pulls from, which may be other instances; the VIM, an OpenStack, is none."""
        return (Provided("registry", self._registries),) if self._registries else ()

    @property
    def role_name(self) -> RoleName | None:
        """The role that the machines get."""
        if self.registry is not None:
            return "registry"
        is_kuryr = has_kuryr(self.phases) and self.cluster_parameters is not None
        return "kuryr" if is_kuryr else "cluster" if self.phases else None

    @property
    def _registries(self) -> tuple[str, ...]:
        cluster = self.cluster_parameters
        return () if cluster is None else places_of_registries(cluster.private_registry_connection_info)

    @property
    def reads_grant_request(self) -> bool:
        """Always: user data get it."""
        return True

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """The grant may also have a cluster's parameters."""
        granted = super().granted(grant, request)
        if self.cluster_parameters is None or CLUSTER not in (grant.additional_params or {}):
            return granted
        try:
            cluster = read_cluster_parameters(grant.additional_params or {})
        except InvalidInput as error:
            raise GrantUnusable(error.field, error.reason) from error
        return granted.model_copy(update={"cluster_parameters": cluster})

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
    def role_name(self) -> RoleName | None:
        """The role of the machines."""
        return role_name(self.phases)

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

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """All that the stack holds."""
        present = self.resources
        if present is None:
            return Resources()
        links = [
            existing(network.name, number, "VL", network.resource_id, self.vim_key)
            for number, network in enumerate(present.networks)
        ]
        servers = removed_servers({one.server_id for one in present.servers}, present, self.vim_key)
        return Resources(remove=[*servers, *links])

    def changes(self) -> ResourceChanges:
        """All resources of the stack are removed once it is deleted."""
        if self.resources is None or not self.is_gone:
            return ResourceChanges()
        return inventory.changes_of_stack(self.resources, vnfd_id=self.vnfd_id, vim_key=self.vim_key, change="REMOVED")
