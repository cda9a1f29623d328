"""Steps that infra-k8s does to heal a workload cluster of Cluster API (capi.md chapter 15)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.capi import (
    CheckMachines,
    ClusterTimeouts,
    MachineReplaced,
    MachinesChecked,
    ReplaceMachine,
)

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.plan import Plan
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import is_of_control_plane
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases
from kubevnfm_lcm_api.lifecycle.workloads.healing import HealWorkloadDraft

_MARGIN_S = 600.0
"""The time in addition to that of the Machine itself, for lost workers."""


@dataclass(frozen=True)
class CheckClusterMachines(Step[HealWorkloadDraft, MachinesChecked]):
    """Find the Machines to replace: those that the request names, otherwise those that are not healthy (CR-116).

    Adds: the Machines, and one step for each that is to be replaced. None: there is nothing to do.
    Again: safe; it changes nothing.
    Fails: Machines that do not exist any more (CR-118); a control plane that would lose its majority (CR-114).
    """

    timeouts: ClusterTimeouts = field(default_factory=ClusterTimeouts)

    kind: ClassVar[str] = "check_machines"
    command: ClassVar[type[Command]] = CheckMachines
    label: ClassVar[str] = "Find the machines to replace"
    base_timeout_s: ClassVar[float] = _MARGIN_S

    def ask(self, draft: HealWorkloadDraft) -> CheckMachines:
        """Ask for the Machines."""
        return CheckMachines(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            chosen=draft.named,
            is_forced=draft.is_forced,
            timeouts=self.timeouts,
            vdus=draft.vdus,
        )

    def fold(self, draft: HealWorkloadDraft, reply: MachinesChecked) -> Draft:
        """Keep the Machines: their uids distinguish the old ones from the new ones."""
        return draft.with_checked(reply)

    def extend(self, draft: HealWorkloadDraft, plan: Plan[HealWorkloadDraft]) -> None:
        """Replace one Machine after the other, before the scripts at the operation's end."""
        joins = last_phases(draft)[:1]
        after: tuple[str, ...] = ()
        for machine in draft.chosen:
            limits = self.timeouts
            phase_s = limits.control_plane if is_of_control_plane(machine) else limits.workers
            step = ReplaceClusterMachine(machine.name, limits.delete + phase_s)
            after = (plan.add(step, id=f"replace_machine/{machine.name}", after=after, before=joins),)

    def undo(self, draft: HealWorkloadDraft) -> None:
        """Nothing was changed."""


@dataclass(frozen=True)
class ReplaceClusterMachine(Step[HealWorkloadDraft, MachineReplaced]):
    """Delete a Machine, and wait until the one that its owner makes in its place is ready (CR-113, CR-115).

    Adds: the Machines that exist now.
    Again: safe; the Machine is known by its uid, so that no second one is deleted.
    Fails: a control plane that would lose its majority; the time limit, and a new Machine that has failed for good.
    """

    name: str
    wait_timeout_s: float

    kind: ClassVar[str] = "replace_machine"
    command: ClassVar[type[Command]] = ReplaceMachine
    label: ClassVar[str] = "Replace the machine {name}"
    base_timeout_s: ClassVar[float] = _MARGIN_S

    @property
    def timeout_s(self) -> float:
        """The time until the old Machine is gone and the new one is ready, and a margin."""
        return self.base_timeout_s + self.wait_timeout_s

    def ask(self, draft: HealWorkloadDraft) -> ReplaceMachine:
        """Ask for the replacement."""
        return ReplaceMachine(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            machine=next(each for each in draft.chosen if each.name == self.name),
            known=tuple(each.uid for each in draft.machines or ()),
            is_forced=draft.is_forced,
            wait_timeout_s=self.wait_timeout_s,
            vdus=draft.vdus,
        )

    def fold(self, draft: HealWorkloadDraft, reply: MachineReplaced) -> Draft:
        """Keep the Machines."""
        return draft.with_machines(reply.machines)

    def undo(self, draft: HealWorkloadDraft) -> None:
        """Heal has no rollback: a deleted Machine cannot be restored (api.md 4.3)."""
