"""Steps that let workers of a cluster join and leave while the VNF is scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from kubevnfm_events import Command
from kubevnfm_events.mgmt import PhaseDone, RunPhase
from kubevnfm_kit.errors import VnfmError

from kubevnfm_lcm_api.lifecycle.clusters.node_steps import added, cluster_phase, nodes_in, without
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import INSTALL_TIMEOUT_S, DriverPhase
from kubevnfm_lcm_api.lifecycle.clusters.scaling import ScaleClusterDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step

SCALE_START: Final = "scale_start"
SCALE_END: Final = "scale_end"
SCALE_ROLLBACK_END: Final = "scale_rollback_end"


@dataclass(frozen=True)
class RunScalePhase(DriverPhase[ScaleClusterDraft]):
    """Run the driver before the stack shrinks, or after the change of the stack (sequences.md 1.11: C1, C2, C3).

    ``scale_start`` takes the workers that leave out of the cluster; ``scale_end`` joins the new ones, and removes what is
    stored about those that are gone.
    Adds: the names of the nodes.
    Again: safe; continues from the journal, nodes that are Ready or gone are left alone.
    Fails: an address, login or script error names node and task; a drain names the pods that it waits for.
    """

    phase: Literal["scale_start", "scale_end"]

    kind: ClassVar[str] = "run_scale_phase"

    def ask(self, draft: ScaleClusterDraft) -> RunPhase:
        """Ask for the phase. Raises: NodeNotFound, SharedAddress of `find_nodes`."""
        if self.phase == SCALE_START:
            leaving = [server.vnfc_id for server in draft.before.servers if server.server_id in draft.leaving]
            return cluster_phase(draft, SCALE_START, nodes_in(draft, draft.before), targets=leaving)
        now = draft.resources or draft.before
        gone = without(nodes_in(draft, draft.before).nodes, now)
        return cluster_phase(draft, SCALE_END, nodes_in(draft, now), targets=added(draft, now), gone=gone)

    def fold(self, draft: ScaleClusterDraft, reply: PhaseDone) -> Draft:
        return draft.after_phase(reply)

    def undo(self, draft: ScaleClusterDraft) -> RunPhase | None:
        """Take the new workers out of the cluster, before the stack shrinks to what it was."""
        if self.phase == SCALE_START or draft.grown is None:
            return None  # A scale in has no rollback: a machine that is deleted cannot be restored (api.md 4.3).
        try:
            found = nodes_in(draft, draft.grown)
        except VnfmError:
            return None  # Nodes that cannot be found could not be asked to join.
        return cluster_phase(draft, "scale_rollback_start", found, targets=added(draft, draft.grown))


@dataclass(frozen=True)
class ForgetNewWorkers(Step[ScaleClusterDraft, PhaseDone]):
    """In a rollback, after the stack is as before, remove what is left of the machines that were to be added.

    Again: safe. Forwards it does nothing.
    """

    kind: ClassVar[str] = "forget_new_workers"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "In a rollback, management driver: scale_rollback_end"
    base_timeout_s: ClassVar[float] = INSTALL_TIMEOUT_S
    only_undo: ClassVar[bool] = True

    def ask(self, draft: ScaleClusterDraft) -> None:
        """Nothing is to be done forwards."""

    def undo(self, draft: ScaleClusterDraft) -> RunPhase | None:
        """Ask for the phase; None if no machine was added, or none of them could be found."""
        if draft.grown is None:
            return None
        try:
            gone = without(nodes_in(draft, draft.grown).nodes, draft.before)
        except VnfmError:
            return None
        return cluster_phase(draft, SCALE_ROLLBACK_END, nodes_in(draft, draft.before), gone=gone) if gone else None
