"""The draft of heal: its facts, and its result for the instance."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import ClusterAccess
from kubevnfm_events.kuryr import KuryrNetwork
from kubevnfm_events.mgmt import PhaseDone, ScriptAnswer
from kubevnfm_events.stacks import StackResources
from kubevnfm_events.vim import VimRegistered
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.resources import ResourceChanges
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.dependencies import HEAL_ADVICE, Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, added, by_vdu, removed_servers
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.machines import inventory
from kubevnfm_lcm_api.lifecycle.machines.cluster_drafts import ClusterChangeDraft
from kubevnfm_lcm_api.lifecycle.machines.cluster_vim import cluster_connection
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName
from kubevnfm_lcm_api.lifecycle.machines.registry_vnf import RegistryVnf


class HealVmDraft(ClusterChangeDraft):
    """HEAL."""

    plan: ClassVar[str] = "heal_vm"

    servers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    is_recreated: bool = False
    """The whole stack is deleted and created again."""
    instantiate_request: SecretParams = Field(default_factory=dict)
    instance_to_make: SecretParams = Field(default_factory=dict)
    """VnfInstance as it was before it was instantiated, for the user data of a stack that is created again."""
    is_whole: bool = False
    """All machines of a cluster are replaced, and it is built again on the new ones."""
    masters: tuple[str, ...] = ()
    """Those of ``servers`` that are masters of a cluster: they are replaced one after another, before the others."""
    storage: str | None = None
    """That of ``servers`` that is the storage server of a cluster."""
    left: str | None = None
    """The VNFC id of the master that has left the cluster and is replaced next."""
    cluster_vim_id: str | None = None
    """The VIM that the cluster is registered as, and that keeps its id."""
    cluster_vim_name: str | None = None
    max_nodes: int | None = None
    """The most nodes that the cluster can have."""
    cluster: ClusterAccess | None = None
    """How to reach the cluster, once it is built again."""
    wanted_vim_id: str | None = None
    """The id that a driver class of the package was given for the VIM that it has created. A VIM of that name keeps its own id."""
    cluster_vim: VimRegistered | None = None
    is_gone: bool = False
    """Whether the old stack is deleted."""
    has_old_nodes: bool = False
    """Whether the stack still has the nodes of a cluster that is built again."""
    kuryr_network: KuryrNetwork | None = None
    """The network entities of a cluster with Kuryr that is built again, once they are found."""
    registry: RegistryVnf | None = None
    """A private registry: it is made again on the machine that replaces the old one."""
    lost_registry: tuple[str, ...] = ()
    """Where a private registry answers, if its machine gets other addresses; its ports are kept otherwise."""

    @property
    def role_name(self) -> RoleName | None:
        """The role of the machines."""
        return "registry" if self.registry is not None else super().role_name

    @property
    def is_in_turns(self) -> bool:
        """Whether masters alone are replaced, one after another."""
        return self.changed_cluster is not None and 0 < len(self.masters) == len(self.servers)

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The cluster that is built again, without the CNFs on it, or the registry that nodes no longer find."""
        lost = Provided("registry", self.lost_registry) if self.lost_registry else None
        if self.is_whole and self.cluster_vim_id is not None:
            lost = lost or Provided("cluster", (self.cluster_vim_id,))
        return None if lost is None else Withdrawn(lost, is_forced=False, advice=HEAL_ADVICE)

    @property
    def leaving(self) -> tuple[str, ...]:
        """Those of ``servers`` that leave the cluster together: all but the masters, and but what left before those."""
        before = {*self.masters, self.storage} if self.masters else ()
        return tuple(server for server in self.servers if server not in before)

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

    def after_phase(self, reply: PhaseDone) -> Self:
        """Return the draft with what the driver's phase made known: the nodes, and the access to a new cluster."""
        draft = self.with_node_names(reply.node_names)
        if reply.phase == "heal_start":
            return draft.model_copy(update={"left": reply.left})
        return draft if reply.cluster is None else draft.model_copy(update={"cluster": reply.cluster})

    def with_kuryr_network(self, network: KuryrNetwork) -> Self:
        """Return the draft with the network entities of a cluster with Kuryr."""
        return self.model_copy(update={"kuryr_network": network})

    @property
    def is_scripted(self) -> bool:
        """Whether a cluster that scripts of the package have built is built again by them."""
        return self.is_whole and self.driver is None and self.cluster_vim_name is not None

    @property
    def registered_vim_name(self) -> str | None:
        """The VIM that the cluster keeps."""
        return self.cluster_vim_name if self.is_scripted else None

    @property
    def registers_vim(self) -> bool:
        """Whether a driver class has created the VIM of the cluster again."""
        return self.wanted_vim_id is not None

    @property
    def reads_admin(self) -> bool:
        """Whether scripts have built the cluster again that additionalParams describe, and have left no VIM for it."""
        return self.is_scripted and self.cluster_parameters is not None and not self.registers_vim

    def with_script(self, answer: ScriptAnswer) -> Self:
        """Return the draft with what a script has answered, and with the VIM that a driver class has created again."""
        draft, vim = super().with_script(answer), answer.vim
        if vim is None:
            return draft
        # Tacker's own driver has taken the entry out at heal_start; it comes back with the registration.
        place = ("vimConnectionInfo", vim.name)
        edits = tuple(edit for edit in draft.script_edits if edit.path[:2] != place)
        update = {"cluster": vim.access, "wanted_vim_id": vim.vim_id, "script_edits": edits}
        if not self.is_scripted:  # the instantiation has left no VIM
            update["cluster_vim_name"] = vim.name
        return draft.model_copy(update=update)

    def with_cluster_vim(self, vim: VimRegistered) -> Self:
        """Return the draft with the VIM that the cluster is registered as."""
        return self.model_copy(update={"cluster_vim": vim})

    def without_stack(self) -> Self:
        """Return the draft once nothing is left of the old stack."""
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
                # A class computes the stack from the machines that are added; none exists when it is called.
                "grant_request": {
                    **{name: value for name, value in self.grant_request.items() if name != "removeResources"},
                    "operation": "INSTANTIATE",
                },
            }
        )

    @property
    def is_reversible(self) -> bool:
        """Never: a replaced machine cannot be restored."""
        return False

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """As for every change; a cluster that was built again has other access data, a registry may have other addresses."""
        done = super().completed(instance)
        if self.registry is not None and self.resources is not None:
            done = done.with_internals(own_registry=self.registry.places(self.resources))
        if self.cluster is None or self.cluster_vim is None or self.cluster_vim_name is None:
            return done
        entry = cluster_connection(self.vnf_instance_id, self.cluster, self.cluster_vim)
        connections = {**done.vnf.vim_connection_info, self.cluster_vim_name: entry}
        return done.with_vnf(vim_connection_info=connections).with_internals(
            cluster_vim_id=self.cluster_vim.vim_id, cluster_vim_key=self.cluster_vim_name
        )

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
            return inventory.changes_of_stack(
                self.before, vnfd_id=self.package.vnfd_id, vim_key=self.vim_key, change="REMOVED"
            )
        return super().changes()
