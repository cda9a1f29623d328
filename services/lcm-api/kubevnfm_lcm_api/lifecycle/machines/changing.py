"""The drafts of the operations on an instantiated VNF: their facts, and their result for the instance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import ServerFacts, StackChangeOrder, StackOrder, StackResources, UserData
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.lcm import VnfInstance
from kubevnfm_sol.resources import (
    ExtVirtualLinkInfo,
    InstantiatedVnfInfo,
    ResourceChanges,
    ScaleInfo,
    VnfcInfo,
)
from kubevnfm_sol.vim import VimConnectionInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.granted_resources import (
    Resources,
    added,
    by_vdu,
    existing,
    existing_servers,
    removed_servers,
)
from kubevnfm_lcm_api.lifecycle.core.granting import granted_connections, granted_links, granted_vim, merged
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.package_identity import package_modifications
from kubevnfm_lcm_api.lifecycle.core.scale_levels import scale_status_of
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import OnVimDraft
from kubevnfm_lcm_api.lifecycle.machines import affected, inventory
from kubevnfm_lcm_api.lifecycle.machines.asked_links import check_granted
from kubevnfm_lcm_api.lifecycle.machines.order import StackDraft

VmState = Literal["STARTED", "STOPPED"]
Age = Literal["new", "old"]


class ChangeVmDraft(StackChangeOrder, StackDraft):
    """The common part: the stack as it was, and as it will be."""

    order_type: ClassVar[type[StackOrder]] = StackChangeOrder
    used_of_grant: ClassVar[frozenset[str]] = frozenset(
        {*OnVimDraft.used_of_grant, "extVirtualLinks", "extManagedVirtualLinks", "zones", "vimAssets"}
    )

    connections_before: SecretParams = Field(default_factory=dict)
    vim_connections: dict[str, VimConnectionInfo] = Field(default_factory=dict)
    """The wanted vimConnectionInfo; empty: unchanged."""

    before: StackResources

    @property
    def flavour_for_package(self) -> str | None:
        """User data find it at every change."""
        return self.flavour_id

    @property
    def servers_leaving(self) -> Collection[str]:
        """Nova ids of the servers that are removed."""
        return ()

    def kept_forms(self, groups: Collection[str]) -> tuple[RequestWarning, ...]:
        """Return a warning for each of these groups of the Base HOT, if a modification has named another package since the stack was made.

        None for a class of the package: it makes of the groups what it likes.
        """
        if self.left_package is None or self.user_data is not None:
            return ()
        until = "until a heal names all its machines, or the whole VNF is healed"
        return tuple(
            RequestWarning(text=f"{group}: the group keeps the definition of the earlier package {until}")
            for group in sorted(groups)
        )

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The difference to the machines that exist."""
        present = self.before.servers
        more = {vdu_id: count - sum(one.vdu_id == vdu_id for one in present) for vdu_id, count in self.counts.items()}
        return Resources(
            add=list(added(more, flavour)),
            remove=list(removed_servers(self.servers_leaving, self.before, self.vim_key)),
            stay=by_vdu(server for server in present if server.server_id not in self.servers_leaving),
        )

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """The grant may also name other access data and links; user data get it."""
        check_granted(grant, has_user_data=self.user_data is not None)
        body = grant.model_dump(by_alias=True, exclude_none=True)
        changes: dict[str, Any] = {"grant": body}
        # Without links in the grant the present ones stay as they are, absent attributes included.
        if "extVirtualLinks" in body or "extManagedVirtualLinks" in body:
            links, managed = (
                self.connections.get(name) or () for name in ("extVirtualLinks", "extManagedVirtualLinks")
            )
            changes["connections"] = {
                **self.connections,
                "extVirtualLinks": granted_links(
                    links, body.get("extVirtualLinks", ()), has_user_data=self.user_data is not None
                ),
                "extManagedVirtualLinks": merged(
                    managed, body.get("extManagedVirtualLinks", ()), "vnfVirtualLinkDescId"
                ),
            }
        before = self.vim_connections or {
            key: VimConnectionInfo.model_validate(one)
            for key, one in (self.instance.get("vimConnectionInfo") or {}).items()
        }
        given = granted_connections(grant, before.get(self.vim_key))
        if given:
            changes["vim_connections"] = {**before, **given}
        if self.vim_key in given:
            changes["vim"] = granted_vim(given[self.vim_key], self.vim, self.vim_key)
        return self.model_copy(update=changes)

    @property
    def stacks(self) -> tuple[StackResources, StackResources | None]:
        """The stack as it was, and as it was reported last."""
        return self.before, self.resources

    @property
    def staying(self) -> tuple[str, ...]:
        """The servers that were there before."""
        return tuple(server.server_id for server in self.before.servers)

    def with_resources(self, resources: StackResources | None) -> Self:
        named = None if resources is None else _named(resources, self.connections)
        return self.model_copy(update={"resources": named})

    def restored(self, resources: StackResources) -> Self:
        """Return the draft after the stack was restored, with its earlier links."""
        named = _named(resources, self.connections_before)
        return self.model_copy(update={"resources": named, "connections": self.connections_before})

    def changes(self) -> ResourceChanges:
        """The difference from before, link ports included."""
        if self.resources is None:
            return ResourceChanges()
        vnfd_id = self.package.vnfd_id
        found = affected.changes_between(self.before, self.resources, vnfd_id=vnfd_id, vim_key=self.vim_key)
        # Link ports follow from the links of the request, so the resources alone do not show their change.
        old = self.facts(self.before, self.connections_before)
        new = self.facts(self.resources, self.connections)
        return affected.with_link_ports(found, old, new, vnfd_id=vnfd_id)

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        assert self.resources is not None
        info = self._info(instance, self.resources, self.connections, self.scale_status)
        changed = instance.with_resources(self.resources).with_internals(connections=self.connections)
        connections = self.vim_connections or instance.vnf.vim_connection_info
        return changed.with_vnf(instantiated_vnf_info=info, vim_connection_info=connections)

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """As before, but with the ids of ports and addresses that the restore created again."""
        # None: no command was sent or none reported, so the stack is as the instance has it.
        if self.resources is None:
            return instance
        return self._unchanged(instance, self.resources, scale_status_of(instance))

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """INSTANTIATED with the resources that exist, as far as that was reported (api.md 4.3)."""
        if self.resources is None:
            return instance
        return self._unchanged(instance, self.resources, self.reached_scale_status(instance, self.resources))

    def _unchanged(
        self, instance: InstanceRecord, resources: StackResources, scale_status: tuple[ScaleInfo, ...]
    ) -> InstanceRecord:
        """Return the instance with the earlier flavour and links: a change that failed must not be shown as done."""
        info = self._info(instance, resources, self.connections_before, scale_status, keeps_flavour=True)
        return instance.with_resources(resources).with_vnf(instantiated_vnf_info=info)

    def reached_scale_status(self, instance: InstanceRecord, resources: StackResources) -> tuple[ScaleInfo, ...]:
        """Return the scale levels that the existing machines amount to."""
        return scale_status_of(instance)

    def _info(
        self,
        instance: InstanceRecord,
        resources: StackResources,
        connections: SecretParams,
        scale_status: tuple[ScaleInfo, ...],
        *,
        keeps_flavour: bool = False,
    ) -> InstantiatedVnfInfo:
        """Return the new facts, and the old ones that are still true."""
        old = instance.vnf.instantiated_vnf_info
        assert old is not None
        # vnfcInfo has attributes that no infrastructure reports: the VNFC's state and its configurable properties.
        known = {one.id: one for one in old.vnfc_info}
        new = self.facts(resources, connections)
        vnfcs = tuple(known.get(one.id, one) for one in new.vnfc_info)
        # Scripts may have left metadata of their own with a machine.
        left = {one.id: one.metadata for one in old.vnfc_resource_info}
        machines = tuple(
            one.model_copy(update={"metadata": {**(left.get(one.id) or {}), **(one.metadata or {})} or None})
            for one in new.vnfc_resource_info
        )
        return new.model_copy(
            update={
                "vnfc_resource_info": machines,
                "flavour_id": old.flavour_id if keeps_flavour else self.flavour_id,
                "scale_status": scale_status or None,
                "max_scale_levels": old.max_scale_levels if keeps_flavour else new.max_scale_levels,
                "vnf_state": _vnf_state(vnfcs) if vnfcs else old.vnf_state,
                "vnfc_info": vnfcs,
                # Without new ones the present parameters are unknown: those of the last success stay.
                "metadata": {**old.metadata, **new.metadata},
                "localization_language": old.localization_language,
                "additional_params": old.additional_params,
            }
        )


class ConnectVmDraft(ChangeVmDraft):
    """CHANGE_EXT_CONN."""

    plan: ClassVar[str] = "change_ext_conn_vm"

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The ports of external connection points."""
        ports = [port for server in self.before.servers for port in (*server.ports, *self.before.ports)]
        touched = {
            port.resource_id: self.external_cps[port.cpd_id] for port in ports if port.cpd_id in self.external_cps
        }
        return Resources(
            update=[
                existing(cpd_id, number, "LINKPORT", port_id, self.vim_key, what="update")
                for number, (port_id, cpd_id) in enumerate(touched.items())
            ]
        )

    def changed_connectivity(self) -> tuple[ExtVirtualLinkInfo, ...]:
        if self.resources is None:
            return ()
        old = self.facts(self.before, self.connections_before).ext_virtual_link_info or ()
        new = self.facts(self.resources, self.connections).ext_virtual_link_info or ()
        return tuple(link for link in new if link not in old)


class ReplaceVmDraft(ChangeVmDraft):
    """CHANGE_FLAVOUR, CHANGE_VNFPKG."""

    plan: ClassVar[str] = "change_template_vm"
    used_of_grant: ClassVar[frozenset[str]] = frozenset({*ChangeVmDraft.used_of_grant, "additionalParams"})

    before_package: PackageRef
    """The earlier package: the rollback needs the VDU names of its descriptor."""
    before_flavour_id: str
    is_new_package: bool = False
    changed_vdus: tuple[str, ...] = ()
    """The VDUs that the request names (``vdu_params``); none: all are changed."""
    rolling: tuple[str, ...] = ()
    """A rolling update: the resources of the top stack that hold the machines to change, one after the other. Empty: all
    machines change in one update."""
    coordination: dict[Age, str] = Field(default_factory=dict)
    """The files that coordinate each changed machine: ``new`` after the change, ``old`` after its reversal."""
    coordination_packages: dict[Age, PackageRef] = Field(default_factory=dict)
    """The packages of these files; none, in an operation of version 0.1.0: the new package has both."""
    coordination_params: SecretParams = Field(default_factory=dict)
    """``vdu_params`` of the request by VDU."""
    instantiate_request: SecretParams = Field(default_factory=dict)
    """The InstantiateVnfRequest that would lead to the same VNF; a heal of the whole stack creates it with this request."""
    creator: UserData | None = None
    """The class that makes the whole stack for this request; None, in an operation of version 0.1.0: ``user_data``."""
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams, the earlier ones merged with the request's."""
    tasks: tuple[str, ...] = ()
    extensions: SecretParams = Field(default_factory=dict)
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)
    vnf: dict[str, str] = Field(default_factory=dict)
    """Attributes of the instance that follow the package: vnfd_id, vnf_provider ..."""

    @property
    def dst_vnfd_id(self) -> str | None:
        """That of the new package."""
        return self.package.vnfd_id if self.is_new_package else None

    @property
    def servers_leaving(self) -> tuple[str, ...]:
        """The machines of VDUs that the new flavour or package lacks."""
        return tuple(server.server_id for server in self.before.servers if server.vdu_id not in self.counts)

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """As for every change, with the parameters of the grant."""
        parameters = {**self.parameters, **(grant.additional_params or {})}
        return super().granted(grant, request).model_copy(update={"parameters": parameters})

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """As for every change; Nova rebuilds and resizes the machines that stay, in place."""
        staying = [server for server in self.before.servers if server.vdu_id in self.counts]
        update = existing_servers(staying, "update", self.vim_key)
        return replace(super().grant_resources(flavour), update=list(update))

    def resources_for_package(self, flavour: Flavour) -> Resources:
        """The machines that change, as removed and added again."""
        # Tacker's classes find the machines to change in removeResources, and count present + added - removed machines.
        present = by_vdu(self.before.servers)
        changed = {vdu_id: ids for vdu_id, ids in present.items() if self.changes_vdu(vdu_id)}
        counts = {
            vdu_id: count - len(present.get(vdu_id, ())) + len(changed.get(vdu_id, ()))
            for vdu_id, count in self.counts.items()
        }
        leaving = [server_id for ids in changed.values() for server_id in ids]
        return Resources(
            add=list(added(counts, flavour)),
            remove=list(removed_servers(leaving, self.before, self.vim_key)),
            stay={vdu_id: ids for vdu_id, ids in present.items() if vdu_id not in changed},
        )

    def machines_to_coordinate(self, age: Age) -> tuple[ServerFacts, ...]:
        """Return the machines that the change touches: as they are after it, or as they are after its reversal."""
        if age not in self.coordination:
            return ()
        stack = self.resources or self.before
        return tuple(server for server in stack.servers if self.changes_vdu(server.vdu_id))

    def machines_of(self, part: str) -> tuple[ServerFacts, ...]:
        """Return the machines of a part of the rolling update as they are now, in the order that they had before."""
        # The reported order is by age, and a machine that was replaced is the youngest.
        place = {(server.member, server.name): number for number, server in enumerate(self.before.servers)}
        found = [
            server
            for server in (self.resources or self.before).servers
            if inventory.part_of(server) == part and self.changes_vdu(server.vdu_id)
        ]
        return tuple(sorted(found, key=lambda server: place.get((server.member, server.name), len(place))))

    def changes_vdu(self, vdu_id: str) -> bool:
        return not self.changed_vdus or vdu_id in self.changed_vdus

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        done = super().completed(instance)
        info = done.vnf.instantiated_vnf_info
        assert info is not None
        vnf: VnfInstance = done.vnf
        done = done.with_vnf(
            **self.vnf,
            extensions={**vnf.extensions, **self.extensions},
            vnf_configurable_properties={**vnf.vnf_configurable_properties, **self.vnf_configurable_properties},
            instantiated_vnf_info=info.model_copy(update={"additional_params": self.parameters or None}),
        )
        return done.with_left_package(None).with_internals(
            request=self.instantiate_request,
            parameters=self.parameters,
            # Read from these parameters with the next request: scripts may have built another cluster.
            cluster=None,
            instantiation_level_id=self.instantiation_level_id,
            external_cps=self.external_cps,
            user_data=self.creator or self.user_data,
            tasks=self.tasks,
        )

    def final_attributes(self) -> dict[str, Any]:
        """Return the instance's attributes that a change of package has changed, as SOL003 names them."""
        if not self.is_new_package:
            return {}
        modified = package_modifications(self.vnf, self.extensions, self.vnf_configurable_properties)
        return {"modifications_triggered_by_vnf_pkg_change": modified}


class OperateVmDraft(OnVimDraft):
    """OPERATE."""

    plan: ClassVar[str] = "operate_vm"

    vnfd_id: str
    before: StackResources
    servers: tuple[str, ...]
    """Nova ids."""
    state: VmState
    graceful_wait_s: float = 0.0
    is_done: bool = False

    @property
    def stacks(self) -> tuple[StackResources, StackResources]:
        return self.before, self.before

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The machines that are started or stopped."""
        touched = [server for server in self.before.servers if server.server_id in self.servers]
        return Resources(update=list(existing_servers(touched, "update", self.vim_key)))

    def operated(self, *, is_done: bool) -> Self:
        """Return the draft once the servers are in the wanted state; ``is_done`` False: in the earlier state again."""
        return self.model_copy(update={"is_done": is_done})

    def changes(self) -> ResourceChanges:
        """Only the machines are changed."""
        if not self.is_done:
            return ResourceChanges()
        touched = affected.only_servers(self.before, lambda server: server.server_id in self.servers)
        return affected.changes_of_stack(touched, vnfd_id=self.vnfd_id, vim_key=self.vim_key, change="MODIFIED")

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """The VNFCs have the state; the VNF is STOPPED if all its VNFCs are."""
        info = instance.vnf.instantiated_vnf_info
        assert info is not None
        server_by_vnfc = {one.id: one.compute_resource.resource_id for one in info.vnfc_resource_info}
        vnfcs = tuple(
            one.model_copy(update={"vnfc_state": self.state})
            if server_by_vnfc.get(one.vnfc_resource_info_id or "") in self.servers
            else one
            for one in info.vnfc_info
        )
        return instance.with_vnf(
            instantiated_vnf_info=info.model_copy(update={"vnfc_info": vnfcs, "vnf_state": _vnf_state(vnfcs)})
        )


def _vnf_state(vnfcs: Sequence[VnfcInfo]) -> VmState:
    """Return STOPPED if all VNFCs are; a VNFC that was created again is STARTED."""
    return "STOPPED" if all(one.vnfc_state == "STOPPED" for one in vnfcs) else "STARTED"


def _named(resources: StackResources, connections: SecretParams) -> StackResources:
    return inventory.with_link_ports(resources, connections.get("extVirtualLinks") or ())
