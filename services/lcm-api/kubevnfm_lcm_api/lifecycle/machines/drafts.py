"""The drafts of instantiate and terminate: their facts while they run, and their result for the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.registries import places_of_registries
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef
from kubevnfm_events.mgmt import INSTANTIATE_END
from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.resources import InstantiatedVnfInfo, ResourceChanges
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, existing, removed_servers
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable, merged
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.machines import affected, inventory
from kubevnfm_lcm_api.lifecycle.machines.asked_links import check_granted
from kubevnfm_lcm_api.lifecycle.machines.cluster_drafts import ClusterBuildDraft, ClusterDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName, has_kuryr, role_name
from kubevnfm_lcm_api.lifecycle.machines.order import StackDraft
from kubevnfm_lcm_api.lifecycle.machines.registry_vnf import RegistryVnf


class InstantiateVmDraft(InstantiateDraft, StackDraft, ClusterBuildDraft):
    """Instantiating a VM-based VNF."""

    plan: ClassVar[str] = "instantiate_vm"
    used_of_grant: ClassVar[frozenset[str]] = frozenset(
        {*InstantiateDraft.used_of_grant, "extManagedVirtualLinks", "zones", "vimAssets"}
    )

    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase, as the flavour maps them."""
    masters: int = 1
    """How many masters the cluster has."""
    registry: RegistryVnf | None = None
    """None: this VNF is not a private registry."""

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The registries that the cluster pulls from, which may be other instances; the VIM, an OpenStack, is none."""
        return (Provided("registry", self._registries),) if self._registries else ()

    @property
    def role_name(self) -> RoleName | None:
        if self.registry is not None:
            return "registry"
        is_kuryr = has_kuryr(self.phases) and self.cluster_parameters is not None
        return "kuryr" if is_kuryr else "cluster" if self.phases else None

    @property
    def _registries(self) -> tuple[str, ...]:
        cluster = self.cluster_parameters
        return () if cluster is None else places_of_registries(cluster.private_registry_connection_info)

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """The grant may also have a cluster's parameters. Links are at the VIM that it names."""
        check_granted(grant, has_user_data=self.user_data is not None)
        granted = super().granted(grant, request)
        known = (None, granted.vim_key, granted.vim.vim_id)
        for index, link in enumerate(granted.ext_virtual_links):
            if link.get("vimConnectionId") not in known:
                raise GrantUnusable(
                    f"extVirtualLinks[{index}]/vimConnectionId", f"{granted.vim_key}, where the machines are, expected"
                )
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

    def with_resources(self, resources: StackResources | None) -> Self:
        named = None if resources is None else inventory.with_link_ports(resources, self.ext_virtual_links)
        return self.model_copy(update={"resources": named})

    @property
    def reads_admin(self) -> bool:
        """Whether a script has built the cluster that additionalParams describe, and has left no VIM for it."""
        if self.cluster_vim_name is None or INSTANTIATE_END in self.phases:
            return False
        entries = [edit.change.get("value") for edit in self.script_edits if edit.path[:1] == ("vimConnectionInfo",)]
        return not any(isinstance(one, Mapping) and "kubernetes" in str(one.get("vimType")).lower() for one in entries)

    def changes(self) -> ResourceChanges:
        if self.resources is None:
            return ResourceChanges()
        found = self.changes_of(self.resources, "ADDED")
        info = self.facts(self.resources, self._connections)
        return affected.with_link_ports(found, None, info, vnfd_id=self.package.vnfd_id)

    @property
    def _connections(self) -> dict[str, Any]:
        """The external and managed links."""
        return {"extVirtualLinks": list(self.ext_virtual_links), "extManagedVirtualLinks": self._ext_managed_links}

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        assert self.resources is not None
        connections = self._connections
        info = self.facts(self.resources, connections).model_copy(
            update={"additional_params": self.parameters or None, "localization_language": self.localization_language}
        )
        deployment = StackDeployment(
            kind="stack", vim_key=self.vim_key, stack_name=self.stack_name, resources=self.resources
        )
        done = self._instantiated(instance, info, deployment).with_internals(
            cluster=self.cluster_parameters,
            phases=self.phases,
            user_data=self.user_data,
            request=self.request,
            connections=connections,
            registries=self._registries,
            own_registry=self.registry.places(self.resources) if self.registry is not None else (),
        )
        return self.with_own_vim(done)

    @property
    def _ext_managed_links(self) -> list[dict[str, Any]]:
        return merged(
            self.request.get("extManagedVirtualLinks") or (),
            self.grant.get("extManagedVirtualLinks") or (),
            "vnfVirtualLinkDescId",
        )


class TerminateVmDraft(TerminateDraft, ClusterDraft):
    """Terminating a VM-based VNF."""

    plan: ClassVar[str] = "terminate_vm"

    stack_name: str
    package: PackageRef
    resources: StackResources | None = None
    links: InstantiatedVnfInfo | None = None
    """The links of the instance with their ports; None also in operations of earlier versions."""
    is_stack_missing: bool = False
    """The stack was deleted by hand, so no phase can run on its machines."""
    phases: dict[str, str] = Field(default_factory=dict)
    parameters: SecretParams = Field(default_factory=dict)
    cluster_vim_key: str | None = None
    cluster_vim_id: str | None = None
    """The VIM that the cluster is registered as; None also if version 0.1.0 accepted the request."""
    own_registry: tuple[str, ...] = ()
    """Where the private registry that it is answers."""

    @property
    def role_name(self) -> RoleName | None:
        return role_name(self.phases)

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The cluster, which CNFs may run on, or the registry, which clusters may pull from."""
        provided = Provided("registry", self.own_registry) if self.own_registry else None
        if provided is None and self.cluster_vim_id is not None:
            provided = Provided("cluster", (self.cluster_vim_id,))
        return None if provided is None else Withdrawn(provided, is_forced=self.is_forceful)

    @property
    def stacks(self) -> tuple[StackResources | None, StackResources | None]:
        """The stack, until it is deleted; none if it is missing, since its addresses may belong to others by now."""
        return None if self.is_stack_missing else self.resources, None if self.is_gone else self.resources

    @property
    def deleted_volumes(self) -> tuple[str, ...]:
        known = None if self.is_stack_missing else self.resources
        return tuple(one.resource_id for one in known.volumes) if known is not None else ()

    def without_stack(self) -> Self:
        return self.model_copy(update={"is_gone": True})

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
        if self.resources is None or not self.is_gone:
            return ResourceChanges()
        vnfd_id = self.vnfd_id
        found = affected.changes_of_stack(self.resources, vnfd_id=vnfd_id, vim_key=self.vim_key, change="REMOVED")
        return affected.with_link_ports(found, self.links, None, vnfd_id=vnfd_id)
