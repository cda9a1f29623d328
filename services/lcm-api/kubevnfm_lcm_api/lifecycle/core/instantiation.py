"""The drafts of instantiate and terminate: their facts while they run, and their result for the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import ApiVersion, PackageRef
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.lcm import InstantiationState, OperationState, VnfInstance
from kubevnfm_sol.resources import InstantiatedVnfInfo, ScaleInfo
from kubevnfm_sol.vim import VimConnectionInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, added
from kubevnfm_lcm_api.lifecycle.core.granting import granted_connections, granted_links, granted_vim
from kubevnfm_lcm_api.lifecycle.core.instance import Deployment, InstanceInternals, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import OnVimDraft


class InstantiateDraft(OnVimDraft):
    """The common part of the instantiation of a VM-based VNF and of a CNF."""

    used_of_grant: ClassVar[frozenset[str]] = frozenset(
        {*OnVimDraft.used_of_grant, "additionalParams", "extVirtualLinks"}
    )

    package: PackageRef
    vim_connections: dict[str, VimConnectionInfo]
    """The instance's vimConnectionInfo, merged with the request's."""
    flavour_id: str
    instantiation_level_id: str | None = None
    api_version: ApiVersion = "v2"
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
    is_removal: bool = False
    """Whether it is rolled back because the instance is to be deleted."""

    def removes_instance(self, state: OperationState) -> bool:
        """After the rollback."""
        return self.is_removal and state is OperationState.ROLLED_BACK

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The VNFCs, and the links that the VNFM creates."""
        assert flavour is not None
        managed = getattr(self, "request", {}).get("extManagedVirtualLinks") or ()
        # A managed link exists already; the VNFM does not create it.
        managed_ids = {link.get("vnfVirtualLinkDescId") for link in managed}
        links = [
            {"id": f"{name}-add-0", "type": "VL", "resourceTemplateId": name}
            for name in flavour.virtual_links
            if name not in managed_ids
        ]
        counts = flavour.initial_counts(self.instantiation_level_id)
        # The ports of these connection points exist already (linkPortId).
        connected = {
            str(cp.get("cpdId"))
            for link in self.ext_virtual_links
            for cp in link.get("extCps") or ()
            if any("linkPortId" in (config or {}) for config in (cp.get("cpConfig") or {}).values())
        }
        return Resources(add=[*added(counts, flavour, connected=connected), *links])

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """The grant may also name other VIMs, parameters and links; scripts get its request too."""
        body = grant.model_dump(by_alias=True, exclude_none=True)
        given = granted_connections(grant, self.vim_connections.get(self.vim_key))
        connections = {**self.vim_connections, **given}
        # A plan builds on one VIM, so the first resource decides for all.
        named = [one.vim_connection_id for one in grant.add_resources or () if one.vim_connection_id in connections]
        key = named[0] if named and named[0] is not None else self.vim_key
        is_other = key in given or key != self.vim_key
        has_user_data = getattr(self, "user_data", None) is not None
        links = granted_links(self.ext_virtual_links, body.get("extVirtualLinks", ()), has_user_data=has_user_data)
        changes: dict[str, Any] = {
            "vim_connections": connections,
            "vim_key": key,
            "vim": granted_vim(connections[key], self.vim, key) if is_other else self.vim,
            "parameters": {**self.parameters, **(grant.additional_params or {})},
            "ext_virtual_links": tuple(links),
        }
        if self.reads_grant_request:
            changes |= {"grant": body, "grant_request": dict(request)}
        return self.model_copy(update=changes)

    def _instantiated(
        self,
        instance: InstanceRecord,
        info: InstantiatedVnfInfo,
        deployment: Deployment,
    ) -> InstanceRecord:
        """Return the instance with the attributes common to both kinds."""
        vnf: VnfInstance = instance.vnf.model_copy(
            update={
                "instantiation_state": InstantiationState.INSTANTIATED,
                "instantiated_vnf_info": info,
                "vim_connection_info": self.vim_connections,
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
            revision=instance.internals.revision,
            warnings=instance.internals.warnings,
            multicloud=instance.internals.multicloud,
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


class TerminateDraft(OnVimDraft):
    """The common part of the termination of a VM-based VNF and of a CNF."""

    vnfd_id: str
    is_forceful: bool
    graceful_wait_s: float = 0.0
    gives_up_waiting: bool = False
    """Whether objects that are not gone after a short time are left (multicloud.md MC-059)."""
    is_gone: bool = False
    """Whether the infrastructure reported that nothing is left."""
    has_scripts: bool = False
    """Whether the VNFD maps phases of any operation to scripts: mgmt-executor has records of their runs then."""
    is_removal: bool = False
    """Whether the instance is to be deleted too."""

    def removes_instance(self, state: OperationState) -> bool:
        """Once it is terminated."""
        return self.is_removal and state is OperationState.COMPLETED

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """NOT_INSTANTIATED, vimConnectionInfo empty (SOL003 5.4.8; sequences.md A9)."""
        # The claim stays until the engine releases the instance in the same write.
        before = instance.internals
        internals = InstanceInternals(
            current_operation=before.current_operation,
            secret_names=before.secret_names,
            revision=before.revision,
            multicloud=before.multicloud,
        )
        vnf = instance.vnf.model_copy(
            update={
                "instantiation_state": InstantiationState.NOT_INSTANTIATED,
                "instantiated_vnf_info": None,
                "vim_connection_info": {},
            }
        )
        return instance.model_copy(update={"vnf": vnf, "internals": internals})
