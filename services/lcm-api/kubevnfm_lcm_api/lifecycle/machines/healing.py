"""The draft of heal: its facts, and its result for the instance."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.stacks import StackResources, UserData
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.resources import ResourceChanges
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.dependencies import HEAL_ADVICE, Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, added, by_vdu, removed_servers
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft
from kubevnfm_lcm_api.lifecycle.machines.cluster_drafts import ClusterBuildDraft


class HealVmDraft(ChangeVmDraft, ClusterBuildDraft):
    """HEAL."""

    plan: ClassVar[str] = "heal_vm"

    servers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    is_recreated: bool = False
    """The whole stack is deleted and created again."""
    instantiate_request: SecretParams = Field(default_factory=dict)
    creator: UserData | None = None
    """The class that has made the stack, and makes it again, unless the request names another one."""
    instance_to_make: SecretParams = Field(default_factory=dict)
    """VnfInstance as it was before it was instantiated, for the user data of a stack that is created again."""
    is_gone: bool = False
    """Whether the old stack is deleted."""
    lost_registry: tuple[str, ...] = ()
    """Where a private registry answers, if its machine gets other addresses; its ports are kept otherwise."""

    @property
    def notes(self) -> tuple[RequestWarning, ...]:
        """The groups some of whose machines are healed: these get their earlier form."""
        groups = {one.server_id: one.group for one in self.before.servers if one.group and not self.is_recreated}
        others = {group for server_id, group in groups.items() if server_id not in self.servers}
        return self.kept_forms({group for server_id, group in groups.items() if server_id in self.servers} & others)

    @property
    def replaced_together(self) -> tuple[str, ...]:
        """Those of ``servers`` that one step replaces."""
        return self.servers

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The registry that nodes no longer find."""
        lost = Provided("registry", self.lost_registry)
        return Withdrawn(lost, is_forced=False, advice=HEAL_ADVICE) if self.lost_registry else None

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The machines that are replaced, or all that the stack holds."""
        present = self.before.servers
        replaced = {server.server_id for server in present} if self.is_recreated else set(self.servers)
        counts = {vdu_id: len(ids) for vdu_id, ids in by_vdu(s for s in present if s.server_id in replaced).items()}
        volumes = {volume.resource_id for volume in self.before.volumes} if self.is_recreated else set(self.volumes)
        new = added(
            self.counts if self.is_recreated else counts,
            flavour,
            with_storage=bool(volumes),
            with_ports=self.is_recreated,
        )
        return Resources(
            add=list(new),
            remove=list(removed_servers(replaced, self.before, self.vim_key, volumes=volumes)),
            stay=by_vdu(server for server in present if server.server_id not in replaced),
        )

    @property
    def deleted_volumes(self) -> tuple[str, ...]:
        return tuple(one.resource_id for one in self.before.volumes) if self.is_recreated else self.volumes

    def without_stack(self) -> Self:
        return self.model_copy(update={"is_gone": True})

    @property
    def creation(self) -> Self:
        """The facts of the instantiation, with the present links: a later operation may have changed them."""
        # Empty links are left out: user data expect the attribute to be absent then.
        links = {name: links for name, links in self.connections.items() if links}
        return self.model_copy(
            update={
                "request": {**self.instantiate_request, **links},
                "instance": self.instance_to_make,
                "user_data": self.user_data or self.creator,
                # A class computes the stack from the machines that are added; none exists when it is called.
                "grant_request": {
                    **{name: value for name, value in self.grant_request.items() if name != "removeResources"},
                    "operation": "INSTANTIATE",
                },
            }
        )

    @property
    def is_reversible(self) -> bool:
        """Whether the stack is not deleted: it can be restored to its definition, with the machines that are left."""
        return not self.is_recreated

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """As for every change; a cluster that was built again has other access data."""
        done = super().completed(instance)
        return self.with_own_vim(done.with_left_package(None) if self.is_recreated else done)

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """As for every change; a deleted stack holds nothing."""
        # Without this the instance would show the machines of a stack that was deleted.
        if self.is_gone and self.resources is None:
            nothing = StackResources(stack_id=self.before.stack_id, stack_name=self.before.stack_name)
            return self.model_copy(update={"resources": nothing}).failed(instance, occurrence_id)
        return super().failed(instance, occurrence_id)

    def changes(self) -> ResourceChanges:
        """As for every change; all resources are removed between the deletion of the old stack and the creation."""
        if self.is_gone and self.resources is None:
            return self.changes_of(self.before, "REMOVED")
        return super().changes()
