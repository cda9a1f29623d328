"""Steps that infra-k8s does to heal, repair and update a workload cluster of Cluster API (capi.md chapters 13 and 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kubevnfm_events import Command, Event
from kubevnfm_events.capi import (
    AddonsApplied,
    AddonsPart,
    ApplyAddons,
    CheckMachines,
    ClusterTimeouts,
    ClusterUpdated,
    MachineReplaced,
    MachinesChecked,
    ReplaceMachine,
    UpdateCluster,
    UpdatePart,
)
from kubevnfm_events.objects import ObjectsRepaired, RepairObjects

from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.step import Plan, Step
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import is_of_control_plane
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases
from kubevnfm_lcm_api.lifecycle.workloads.healing import HealWorkloadDraft, RepairWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.replacing import ReplaceWorkloadDraft

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


@dataclass(frozen=True)
class RepairClusterObjects(AwaitedObjects[RepairWorkloadDraft, ObjectsRepaired]):
    """Apply the objects of a workload cluster that others have deleted or changed; a later step awaits the cluster (CR-121).

    Adds: the objects that exist now.
    Again: safe; what is as it was applied is left alone.
    Fails: a cluster that was deleted is lost; otherwise as `RepairCnfObjects`.
    """

    kind: ClassVar[str] = "repair_cluster_objects"
    command: ClassVar[type[Command]] = RepairObjects
    label: ClassVar[str] = "Repair the objects of the workload cluster"

    def ask(self, draft: RepairWorkloadDraft) -> RepairObjects:
        return RepairObjects(
            **vars(draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            wait_timeout_s=self.wait_timeout_s,
            cluster_apart=True,
        )

    def fold(self, draft: RepairWorkloadDraft, reply: ObjectsRepaired) -> Draft:
        """Keep what exists now."""
        return draft.with_repaired(Release.from_applied(reply), reply.repaired)

    def fold_remains(self, draft: RepairWorkloadDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what exists after the failure."""
        return draft.with_repaired(Release.from_applied(ObjectsRepaired.model_validate(remains)), None)

    def undo(self, draft: RepairWorkloadDraft) -> None:
        """Heal has no rollback: what others have changed is not restored (api.md 4.3)."""


@dataclass(frozen=True)
class UpdateClusterObjects(Step[ReplaceWorkloadDraft, ClusterUpdated]):
    """Do one part of the update: check it, apply without or with the workers, or prune (CR-094 to CR-099).

    Adds: the objects that exist now; ``check`` adds the version step.
    Again: safe; what is applied and deleted already is left alone.
    Fails: a change that is not possible names the field; unknown kinds, foreign objects and refusals name the object.
    """

    part: UpdatePart

    kind: ClassVar[str] = "update_cluster"
    command: ClassVar[type[Command]] = UpdateCluster
    label: ClassVar[str] = "Update the objects of the workload cluster: {part}"
    base_timeout_s: ClassVar[float] = 1200.0

    def ask(self, draft: ReplaceWorkloadDraft) -> UpdateCluster:
        """Ask for this part, with the manifests of the new package."""
        return self._command(draft, self.part)

    def fold(self, draft: ReplaceWorkloadDraft, reply: ClusterUpdated) -> Draft:
        """Keep what exists now."""
        if self.part == "check":
            return draft.with_version_step(reply.version_step)
        return draft.replaced(Release.from_applied(reply), draft.new_files)

    def fold_remains(self, draft: ReplaceWorkloadDraft, remains: Mapping[str, object]) -> Draft | None:
        """Keep what exists after the failure."""
        return None if self.part == "check" else self.fold(draft, ClusterUpdated.model_validate(remains))

    def undone(self, draft: ReplaceWorkloadDraft, reply: Event) -> Draft:
        """Keep what exists after the reversal."""
        assert isinstance(reply, ClusterUpdated)
        return draft.replaced(Release.from_applied(reply), draft.def_files)

    def undo(self, draft: ReplaceWorkloadDraft) -> UpdateCluster | None:
        """Ask for the objects of the earlier package; what the new one brought is deleted last (CR-102)."""
        if self.part == "prune":
            return None  # what was deleted comes back with the other objects
        return self._command(draft, "prune" if self.part == "check" else "all", is_back=True)

    def _command(self, draft: ReplaceWorkloadDraft, part: UpdatePart, *, is_back: bool = False) -> UpdateCluster:
        return UpdateCluster(
            **vars(draft.order_before if is_back else draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            cluster=draft.workload_cluster,
            part=part,
        )


@dataclass(frozen=True)
class UpdateClusterAddons(Step[ReplaceWorkloadDraft, AddonsApplied]):
    """Apply the addons of the new package inside the workload cluster, or delete those that it lacks (CR-048, CR-094).

    Again: safe; what is applied and deleted already is left alone.
    Fails: as `ApplyClusterAddons`.
    """

    part: AddonsPart

    kind: ClassVar[str] = "update_addons"
    command: ClassVar[type[Command]] = ApplyAddons
    label: ClassVar[str] = "Update the addons inside the workload cluster: {part}"
    base_timeout_s: ClassVar[float] = 1200.0

    def ask(self, draft: ReplaceWorkloadDraft) -> ApplyAddons:
        """Ask for this part, with the addons of the new package."""
        return self._command(draft, self.part)

    def undo(self, draft: ReplaceWorkloadDraft) -> ApplyAddons | None:
        """Ask for the addons of the earlier package, and for the deletion of those that it lacks (CR-102)."""
        if self.part == "prune":
            return None  # what was deleted comes back with the others
        return self._command(draft, "replace", is_back=True)

    def _command(self, draft: ReplaceWorkloadDraft, part: AddonsPart, *, is_back: bool = False) -> ApplyAddons:
        files = draft.addon_files_before if is_back else draft.addon_files or ()
        return ApplyAddons(
            **{**vars(draft.order_before if is_back else draft.order), "def_files": files},
            vnf_instance_id=draft.vnf_instance_id,
            cluster=draft.workload_cluster,
            part=part,
        )
