"""Steps that infra-k8s does to change a CNF that runs: numbers of replicas, pods, what others have changed, and its package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command, Event
from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_END
from kubevnfm_events.objects import (
    HealObjects,
    ObjectCount,
    ObjectsApplied,
    ObjectsHealed,
    ObjectsRepaired,
    ObjectsReplaced,
    ObjectsScaled,
    ObjectsUpdated,
    RepairObjects,
    ReplaceObjects,
    ScaleObjects,
    UpdateObjects,
)

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.management_steps import record_changed_providers
from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.containers.phase_steps import RunCnfPhase
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases


@dataclass(frozen=True)
class ScaleCnfObjects(AwaitedObjects[ScaleCnfDraft, ObjectsScaled]):
    """Set the number of replicas of the objects, and wait until they are reached (capi.md CR-033).

    Adds: the pods that run now.
    Again: safe; the counts are absolute.
    Fails: a kind that cannot be scaled, a missing object, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "scale_objects"
    command: ClassVar[type[Command]] = ScaleObjects
    label: ClassVar[str] = "Scale the containers"

    def ask(self, draft: ScaleCnfDraft) -> ScaleObjects:
        return self._command(draft, draft.counts)

    def fold(self, draft: ScaleCnfDraft, reply: ObjectsScaled) -> Draft:
        """Keep what runs now."""
        return draft.with_release(Release.from_applied(reply))

    def undone(self, draft: ScaleCnfDraft, reply: Event) -> Draft:
        """Keep what runs after the reversal."""
        assert isinstance(reply, ObjectsScaled)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: ScaleCnfDraft, remains: Mapping[str, object]) -> Draft | None:
        """Keep what runs after a reversal that failed."""
        return self.fold_remains(draft, remains)

    def undo(self, draft: ScaleCnfDraft) -> ScaleObjects:
        """Ask for the counts of the scale levels before; a scale in has no rollback (CR-093)."""
        return self._command(draft, draft.counts_before).model_copy(update={"is_undo": True})

    def _command(self, draft: ScaleCnfDraft, counts: tuple[ObjectCount, ...]) -> ScaleObjects:
        return ScaleObjects(
            vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, objects=counts, wait_timeout_s=self.wait_timeout_s
        )


@dataclass(frozen=True)
class HealCnfPods(AwaitedObjects[HealCnfDraft, ObjectsHealed]):
    """Delete pods and wait for as many new ready ones (capi.md CR-034).

    Adds: the pods that run now.
    Again: safe; the pods are known by uid, so that a new one is not deleted.
    Fails: a missing workload or manifest, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "heal_objects"
    command: ClassVar[type[Command]] = HealObjects
    label: ClassVar[str] = "Replace pods"

    def ask(self, draft: HealCnfDraft) -> HealObjects:
        return HealObjects(
            **vars(draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            pods=draft.pods,
            wait_timeout_s=self.wait_timeout_s,
        )

    def fold(self, draft: HealCnfDraft, reply: ObjectsHealed) -> Draft:
        """Keep what runs now."""
        return draft.with_release(Release.from_applied(reply))

    def undo(self, draft: HealCnfDraft) -> None:
        """Heal has no rollback: a deleted pod cannot be restored (api.md 4.3)."""


@dataclass(frozen=True)
class RepairCnfObjects(AwaitedObjects[HealCnfDraft, ObjectsRepaired]):
    """Apply the objects of a CNF that others have deleted or changed, and wait until all are ready (capi.md CR-121).

    Adds: the pods that run now. If a Service has other node ports now, the load balancer in front of the CNF gets them.
    Again: safe; what is as it was applied is left alone.
    Fails: objects of others in their place, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "repair_objects"
    command: ClassVar[type[Command]] = RepairObjects
    label: ClassVar[str] = "Repair the Kubernetes objects"

    def ask(self, draft: HealCnfDraft) -> RepairObjects:
        return RepairObjects(
            **vars(draft.order), vnf_instance_id=draft.vnf_instance_id, wait_timeout_s=self.wait_timeout_s
        )

    def fold(self, draft: HealCnfDraft, reply: ObjectsRepaired) -> Draft:
        """Keep what runs now."""
        return draft.with_repaired(Release.from_applied(reply), reply.repaired)

    def fold_remains(self, draft: HealCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after the failure."""
        return draft.with_repaired(Release.from_applied(ObjectsRepaired.model_validate(remains)), None)

    def extend(self, draft: HealCnfDraft, plan: Plan[HealCnfDraft]) -> None:
        """Configure the load balancer again if a Service was created again with other node ports."""
        now = draft.release
        if INSTANTIATE_END not in draft.phases or now is None or now.services == draft.before.services:
            return
        joins = last_phases(draft)[:1]
        removed = (
            [plan.add(RunCnfPhase(TERMINATE_END), id=TERMINATE_END, before=joins)]
            if TERMINATE_END in draft.phases
            else []
        )
        plan.add(RunCnfPhase(INSTANTIATE_END), id=INSTANTIATE_END, after=removed, before=joins)

    def undo(self, draft: HealCnfDraft) -> None:
        """Heal has no rollback: what others have changed is not restored (api.md 4.3)."""


@dataclass(frozen=True)
class ReplaceCnfObjects(AwaitedObjects[ReplaceCnfDraft, ObjectsReplaced]):
    """Apply all objects of the new package in order, and delete what it lacks once all are ready (capi.md CR-094).

    Adds: the objects and pods that exist now.
    Again: safe; what is applied and deleted already is left alone.
    Fails: unknown kinds, foreign objects, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "replace_objects"
    command: ClassVar[type[Command]] = ReplaceObjects
    label: ClassVar[str] = "Replace the Kubernetes objects"

    def ask(self, draft: ReplaceCnfDraft) -> ReplaceObjects:
        return self._command(draft)

    def fold(self, draft: ReplaceCnfDraft, reply: ObjectsReplaced) -> Draft:
        """Keep what exists now."""
        return draft.replaced(Release.from_applied(reply), draft.new_files)

    def extend(self, draft: ReplaceCnfDraft, plan: Plan[ReplaceCnfDraft]) -> None:
        """Have the VIM show the providers of Cluster API, if they are others now."""
        record_changed_providers(draft, plan)

    def undone(self, draft: ReplaceCnfDraft, reply: Event) -> Draft:
        """Keep what exists after the reversal."""
        assert isinstance(reply, ObjectsApplied)
        return draft.replaced(Release.from_applied(reply), draft.def_files)

    def fold_undo_remains(self, draft: ReplaceCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what exists after a reversal that failed."""
        return self.undone(draft, ObjectsReplaced.model_validate(remains))

    def undo(self, draft: ReplaceCnfDraft) -> ReplaceObjects:
        """Ask for the objects of the earlier package; what the new one brought is deleted."""
        return self._command(draft, is_back=True)

    def _command(self, draft: ReplaceCnfDraft, *, is_back: bool = False) -> ReplaceObjects:
        return ReplaceObjects(
            **vars(draft.order_before if is_back else draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            wait_timeout_s=self.wait_timeout_s,
            is_rollback=is_back or draft.is_rollback,
            is_undo=is_back,
            replace_kinds=draft.replace_kinds,
        )


@dataclass(frozen=True)
class ChangeCnfImages(AwaitedObjects[ReplaceCnfDraft, ObjectsUpdated]):
    """Set the images of the new package for the workloads of some VDUs, and wait for their new pods (capi.md CR-035).

    Adds: the pods that run now.
    Again: safe; what is changed and restarted already is left alone.
    Fails: a VDU without a workload in the files, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "change_images"
    command: ClassVar[type[Command]] = UpdateObjects
    label: ClassVar[str] = "Change the images of the containers"

    def ask(self, draft: ReplaceCnfDraft) -> UpdateObjects:
        return self._command(draft)

    def fold(self, draft: ReplaceCnfDraft, reply: ObjectsUpdated) -> Draft:
        """Keep what runs now."""
        return draft.replaced(Release.from_applied(reply), reply.def_files)

    def extend(self, draft: ReplaceCnfDraft, plan: Plan[ReplaceCnfDraft]) -> None:
        """Have the VIM show the providers of Cluster API, if they are others now."""
        record_changed_providers(draft, plan)

    def undone(self, draft: ReplaceCnfDraft, reply: Event) -> Draft:
        """Keep what runs after the reversal."""
        assert isinstance(reply, ObjectsUpdated)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: ReplaceCnfDraft, remains: Mapping[str, object]) -> Draft | None:
        """Keep what runs after a reversal that failed."""
        return self.fold_remains(draft, remains)

    def undo(self, draft: ReplaceCnfDraft) -> UpdateObjects:
        """Ask for the images of the earlier package."""
        return self._command(draft, is_back=True)

    def _command(self, draft: ReplaceCnfDraft, *, is_back: bool = False) -> UpdateObjects:
        return UpdateObjects(
            **vars(draft.order_before if is_back else draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            config_files=() if is_back else draft.new_files,
            before=draft.before_package,
            images_of=draft.images_of,
            wait_timeout_s=self.wait_timeout_s,
        )
