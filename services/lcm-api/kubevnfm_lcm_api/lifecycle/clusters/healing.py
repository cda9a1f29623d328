"""Heal of a cluster: the choice of its nodes, and what the operation knows (sequences.md 5.1 to 5.3, 5.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from kubevnfm_cluster.parameters import Role
from kubevnfm_events.mgmt import REGISTRY_DRIVERS, PhaseDone, ScriptAnswer
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.changing import ClusterChangeDraft, changed_cluster, cluster_of, servers_of
from kubevnfm_lcm_api.lifecycle.clusters.kuryr import driver_of
from kubevnfm_lcm_api.lifecycle.clusters.nodes import has_nodes, storage_server
from kubevnfm_lcm_api.lifecycle.clusters.places import Places
from kubevnfm_lcm_api.lifecycle.core.dependencies import HEAL_ADVICE, Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.drift import is_stack_missing
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.roles import RequestedHeal

_FIELD: Final = "vnfcInstanceId"


class HealClusterDraft(HealVmDraft, ClusterChangeDraft):
    """HEAL of nodes of a cluster, or of the whole cluster."""

    is_reversible: ClassVar[bool] = False
    """The nodes have left the cluster, and their data are lost."""

    is_whole: bool = False
    """All machines of the cluster are replaced, and it is built again on the new ones."""
    masters: tuple[str, ...] = ()
    """Those of ``servers`` that are masters: they are replaced one after another, before the others."""
    storage: str | None = None
    """That of ``servers`` that is the storage server."""
    left: str | None = None
    """The VNFC id of the master that has left the cluster and is replaced next."""
    cluster_vim_id: str | None = None
    """The VIM that the cluster is registered as, and that keeps its id."""
    has_old_nodes: bool = False
    """Whether the stack still has the nodes of a cluster that is built again."""

    @classmethod
    def has_stored(cls, document: Mapping[str, Any]) -> bool:
        """Return whether nodes are replaced, and not plain machines alone; scripts of the package have no driver."""
        return super().has_stored(document) or bool(document.get("is_whole"))

    @property
    def is_in_turns(self) -> bool:
        """Whether masters alone are replaced, one after another."""
        return 0 < len(self.masters) == len(self.servers)

    @property
    def leaving(self) -> tuple[str, ...]:
        """Those of ``servers`` that leave the cluster together: all but the masters, and but what left before those."""
        before = {*self.masters, self.storage} if self.masters else ()
        return tuple(server for server in self.servers if server not in before)

    @property
    def replaced_together(self) -> tuple[str, ...]:
        """All but the masters."""
        return tuple(server for server in self.servers if server not in self.masters)

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The cluster that is built again, without the CNFs on it."""
        if not self.is_whole or self.cluster_vim_id is None:
            return super().withdrawn
        return Withdrawn(Provided("cluster", (self.cluster_vim_id,)), is_forced=False, advice=HEAL_ADVICE)

    @property
    def is_scripted(self) -> bool:
        """Whether a cluster that scripts of the package have built is built again by them."""
        return self.is_whole and self.driver is None and self.cluster_vim_name is not None

    @property
    def registered_vim_name(self) -> str | None:
        """The VIM that the cluster keeps."""
        return self.cluster_vim_name if self.is_scripted else None

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
        name = self.cluster_vim_name if self.is_scripted else vim.name
        return draft.model_copy(update={"script_edits": edits, "cluster_vim_name": name})

    def after_phase(self, reply: PhaseDone) -> Self:
        """Return the draft with what the driver's phase made known: the nodes, the master that has left, and the access."""
        draft = super().after_phase(reply)
        return draft.model_copy(update={"left": reply.left}) if reply.phase == "heal_start" else draft


def healed_cluster(asked: RequestedHeal) -> HealVmDraft:
    """Return the draft of a heal of a cluster, in part or as a whole; that of plain machines if no node is replaced.

    Raises: Unprocessable if the cluster would not survive the loss of the machines; InvalidInput, Unprocessable of
    `cluster_of` and `with_overrides`.
    """
    vnf, plain, chosen = asked.vnf, asked.plain, asked.chosen
    internals = vnf.record.internals
    driver = driver_of(internals.phases, "heal_end")
    if "instantiate_end" not in internals.phases and internals.cluster_vim_key is not None:
        return _scripted_cluster(asked)
    if driver is None or driver in REGISTRY_DRIVERS or "instantiate_end" not in internals.phases:
        return plain
    present = cluster_of(internals)
    if chosen is None:
        places = Places(vnf.flavour, asked.base_hot, internals.instantiation_level_id)
        roles: tuple[Role, ...] = ("master", "worker")
        name = internals.cluster_vim_key or present.vim_name or f"kubernetes_vim_{plain.vnf_instance_id}"
        return changed_cluster(HealClusterDraft, plain, vnf, driver, asked.given).model_copy(
            update={
                "is_whole": True,
                "cluster_vim_id": internals.cluster_vim_id,
                "cluster_vim_name": name,
                "has_old_nodes": not is_stack_missing(vnf.record) and has_nodes(vnf.resources, present),
                "max_nodes": sum(places.group(present.group(role), role, needed=None).most for role in roles),
            }
        )
    masters = {server.server_id for server in servers_of(vnf, present, "master")}
    workers = {server.server_id for server in servers_of(vnf, present, "worker")}
    if masters and masters.issubset(chosen):
        which = "this is the only master" if len(masters) == 1 else f"these are all {len(masters)} masters"
        raise Unprocessable(
            _FIELD, f"HEAL-1M: {which}, and the cluster is lost with it: heal the whole cluster, without vnfcInstanceId"
        )
    of_storage = present.storage_server
    storage = None if of_storage is None else storage_server(vnf.resources, of_storage).server_id
    if not {*masters, *workers, storage}.issuperset(chosen):
        raise Unprocessable(
            _FIELD, "a machine that is neither master, worker nor storage server is named: it cannot be healed"
        )
    return changed_cluster(HealClusterDraft, plain, vnf, driver, asked.given).model_copy(
        update={
            "masters": tuple(server for server in chosen if server in masters),
            "storage": storage if storage in chosen else None,
        }
    )


def _scripted_cluster(asked: RequestedHeal) -> HealVmDraft:
    """Return the draft of a heal of a cluster that scripts of the package have built, if they build it again.

    Nothing is known of its nodes, so only a heal of the whole VNF gives it other access data (sequences.md 6.7).
    """
    internals, servers = asked.vnf.record.internals, asked.vnf.resources.servers
    if asked.chosen is not None and not set(asked.chosen).issuperset(server.server_id for server in servers):
        return asked.plain
    described = {} if internals.cluster is None else {"parameters": internals.parameters}
    return HealClusterDraft(
        **{
            **vars(asked.plain),
            **described,
            "is_whole": True,
            "cluster_parameters": internals.cluster,
            "cluster_vim_id": internals.cluster_vim_id,
            "cluster_vim_name": internals.cluster_vim_key,
        }
    )
