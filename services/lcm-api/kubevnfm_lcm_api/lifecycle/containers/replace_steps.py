"""Steps that infra-k8s does to change a CNF to another package: all its objects, or the images of some VDUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command, Event
from kubevnfm_events.objects import ObjectsApplied, ObjectsReplaced, ObjectsUpdated, ReplaceObjects, UpdateObjects

from kubevnfm_lcm_api.lifecycle.containers.management_steps import record_changed_providers
from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.plan import Plan


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
        """Ask for the objects of the new package."""
        return self._command(draft)

    def fold(self, draft: ReplaceCnfDraft, reply: ObjectsReplaced) -> Draft:
        """Keep what exists now."""
        return draft.replaced(Release.from_applied(reply), draft.new_files)

    def extend(self, draft: ReplaceCnfDraft, plan: Plan[ReplaceCnfDraft]) -> None:
        """Have the VIM show the providers of Cluster API, if they are others now."""
        record_changed_providers(draft, plan)

    def fold_remains(self, draft: ReplaceCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what exists after the failure."""
        return self.fold(draft, ObjectsReplaced.model_validate(remains))

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
        """Ask for the images of the new package."""
        return self._command(draft)

    def fold(self, draft: ReplaceCnfDraft, reply: ObjectsUpdated) -> Draft:
        """Keep what runs now."""
        return draft.replaced(Release.from_applied(reply), reply.def_files)

    def extend(self, draft: ReplaceCnfDraft, plan: Plan[ReplaceCnfDraft]) -> None:
        """Have the VIM show the providers of Cluster API, if they are others now."""
        record_changed_providers(draft, plan)

    def fold_remains(self, draft: ReplaceCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after the failure."""
        return self.fold(draft, ObjectsUpdated.model_validate(remains))

    def undone(self, draft: ReplaceCnfDraft, reply: Event) -> Draft:
        """Keep what runs after the reversal."""
        assert isinstance(reply, ObjectsUpdated)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: ReplaceCnfDraft, remains: Mapping[str, object]) -> Draft:
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
