"""Steps that infra-k8s does to change a CNF that runs: its numbers of replicas, and its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command, Event
from kubevnfm_events.objects import HealObjects, ObjectCount, ObjectsHealed, ObjectsScaled, ScaleObjects

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release


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
        """Ask for the wanted counts."""
        return self._command(draft, draft.counts)

    def fold(self, draft: ScaleCnfDraft, reply: ObjectsScaled) -> Draft:
        """Keep what runs now."""
        return draft.with_release(Release.from_applied(reply))

    def fold_remains(self, draft: ScaleCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after the failure."""
        return self.fold(draft, ObjectsScaled.model_validate(remains))

    def undone(self, draft: ScaleCnfDraft, reply: Event) -> Draft:
        """Keep what runs after the reversal."""
        assert isinstance(reply, ObjectsScaled)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: ScaleCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after a reversal that failed."""
        return self.fold_remains(draft, remains)

    def undo(self, draft: ScaleCnfDraft) -> ScaleObjects:
        """Ask for the counts of the scale levels before; a scale in has no rollback (CR-093)."""
        return self._command(draft, draft.counts_before)

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
        """Ask for the replacement."""
        return HealObjects(
            **vars(draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            pods=draft.pods,
            wait_timeout_s=self.wait_timeout_s,
        )

    def fold(self, draft: HealCnfDraft, reply: ObjectsHealed) -> Draft:
        """Keep what runs now."""
        return draft.with_release(Release.from_applied(reply))

    def fold_remains(self, draft: HealCnfDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after the failure."""
        return self.fold(draft, ObjectsHealed.model_validate(remains))

    def undo(self, draft: HealCnfDraft) -> None:
        """Heal has no rollback: a deleted pod cannot be restored (api.md 4.3)."""
