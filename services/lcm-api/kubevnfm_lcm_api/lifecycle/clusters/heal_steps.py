"""Steps that take nodes out of a cluster before their machines are replaced, and join those in their places."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from kubevnfm_events import Command
from kubevnfm_events.mgmt import PhaseDone, RunPhase
from kubevnfm_events.stacks import HealResources, StackResources
from kubevnfm_kit.errors import VnfmError

from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft
from kubevnfm_lcm_api.lifecycle.clusters.node_steps import added, cluster_phase, nodes_in, without
from kubevnfm_lcm_api.lifecycle.clusters.nodes import FoundNodes
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import DriverPhase
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.machines.change_steps import ChangeStep, replacement

HEAL_START: Final = "heal_start"
HEAL_END: Final = "heal_end"


@dataclass(frozen=True)
class RunHealPhase(DriverPhase[HealClusterDraft]):
    """Run the driver before machines are replaced, or after it (sequences.md 1.11: E1, E4).

    ``heal_start`` takes the nodes out of the cluster; ``heal_end`` joins the new machines under their names, or builds the
    cluster again if all are new, and removes what is stored about the old ones.
    Adds: the names of the nodes, and the access to a cluster that was built again.
    Again: safe; continues from the journal, nodes that are Ready or gone are left alone.
    Fails: an address, login or script error names node and task; a drain names the pods that it waits for.
    """

    phase: Literal["heal_start", "heal_end"]

    kind: ClassVar[str] = "run_heal_phase"

    def ask(self, draft: HealClusterDraft) -> RunPhase:
        """Ask for the phase. Raises: NodeNotFound, SharedAddress of `find_nodes`."""
        now = draft.resources or draft.before
        if self.phase == HEAL_START:
            return _leaving(draft, now, draft.leaving)
        if draft.is_whole:
            return _whole(draft, now)
        return _joining(draft, now)

    def fold(self, draft: HealClusterDraft, reply: PhaseDone) -> Draft:
        return draft.after_phase(reply)

    def undo(self, draft: HealClusterDraft) -> None:
        """A heal has no rollback: a machine that is replaced cannot be restored (api.md 4.3)."""


@dataclass(frozen=True)
class RunMasterHealPhase(RunHealPhase):
    """Run the driver before the machine of one of several masters is replaced, or after it (sequences.md 1.11: E2).

    ``heal_start`` names all masters that are still to be healed: the driver checks the rule of quorum for all of them, and
    takes out the one whose turn it is. ``heal_end`` joins its new machine.
    Adds: the master that has left; then the names of the nodes.
    Again: safe; a master that has left already is chosen again.
    Fails: as `RunHealPhase`, and before any change if etcd would lose its majority.
    """

    turn: int = 1

    kind: ClassVar[str] = "run_master_heal_phase"
    label: ClassVar[str] = "Management driver: {phase} of a master, number {turn}"

    def ask(self, draft: HealClusterDraft) -> RunPhase:
        """Ask for the phase. Raises: NodeNotFound, SharedAddress of `find_nodes`."""
        now = draft.resources or draft.before
        if self.phase == HEAL_END:
            return _joining(draft, now)
        return _leaving(draft, now, draft.masters)


@dataclass(frozen=True)
class HealMaster(ChangeStep[HealClusterDraft]):
    """Replace the machine of the master that has left its cluster."""

    turn: int

    kind: ClassVar[str] = "heal_master_resources"
    command: ClassVar[type[Command]] = HealResources
    label: ClassVar[str] = "Replace the machine of a master, number {turn}"

    def ask(self, draft: HealClusterDraft) -> HealResources:
        return replacement(draft, tuple(one.server_id for one in draft.before.servers if one.vnfc_id == draft.left))

    def undo(self, draft: HealClusterDraft) -> None:
        """A broken machine is not restored (api.md 4.3)."""


@dataclass(frozen=True)
class ReleaseStorage(RunHealPhase):
    """Run the driver before masters and the storage server of a cluster are replaced (sequences.md 5.2; 1.11: E3).

    The command names both: the driver takes the persistent volumes out of the cluster only if etcd can lose the masters.
    Again: safe; volumes that are gone stay so.
    Fails: a volume is in use, or etcd would lose its majority; nothing has changed then.
    """

    kind: ClassVar[str] = "release_storage"
    label: ClassVar[str] = "Management driver: {phase} of the storage server"

    def ask(self, draft: HealClusterDraft) -> RunPhase:
        """Ask for the phase. Raises: NodeNotFound, SharedAddress of `find_nodes`."""
        assert draft.storage is not None
        return _leaving(draft, draft.resources or draft.before, {*draft.masters, draft.storage})


def _leaving(draft: HealClusterDraft, now: StackResources, servers: Collection[str]) -> RunPhase:
    """Return the command by which these servers leave the cluster, or begin to."""
    targets = [server.vnfc_id for server in now.servers if server.server_id in servers]
    return cluster_phase(draft, HEAL_START, nodes_in(draft, now), targets=targets)


def _joining(draft: HealClusterDraft, now: StackResources) -> RunPhase:
    """Return the command by which the new machines join that have not joined yet: those get their names then."""
    before = nodes_in(draft, draft.before)
    found = _named_by_address(nodes_in(draft, now), before)
    targets = [vnfc_id for vnfc_id in added(draft, now) if vnfc_id not in draft.node_names]
    return cluster_phase(draft, HEAL_END, found, targets=targets, gone=without(before.nodes, now))


def _whole(draft: HealClusterDraft, now: StackResources) -> RunPhase:
    found = nodes_in(draft, now)
    try:
        gone = without(nodes_in(draft, draft.before).nodes, now)
    except VnfmError:
        gone = ()  # An earlier heal that failed has left no machines, or some of them.
    targets = [node.vnfc_id for node in found.nodes]
    command = cluster_phase(draft, HEAL_END, found, targets=targets, gone=gone)
    return command.model_copy(update={"max_nodes": draft.max_nodes, "kuryr": draft.kuryr_network})


def _named_by_address(found: FoundNodes, before: FoundNodes) -> FoundNodes:
    """Return the nodes, each new one with the name of the old one at its address: a heal keeps the ports."""
    known = {node.nic_address: node.name for node in before.nodes}
    nodes = tuple(node.model_copy(update={"name": node.name or known.get(node.nic_address)}) for node in found.nodes)
    return replace(found, nodes=nodes)
