"""Steps that infra-k8s does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kubevnfm_events import Event
from kubevnfm_events.infra import ApplyObjects, DeleteObjects, ObjectsApplied, ObjectsDeleted

from kubevnfm_lcm_api.lifecycle.domain.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.domain.instance import Release
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step


class ApplyCnfObjects(Step[InstantiateCnfDraft, ObjectsApplied]):
    """Apply the CNF's manifests in order and wait until all is ready (capi.md chapter 3).

    Adds: ``release``.
    Again: safe; what was applied carries the instance's label and is adopted.
    Fails: unknown kinds, foreign objects, refusals and timeouts name the object.
    """

    name: ClassVar[str] = "apply_objects"
    title: ClassVar[str] = "Apply the Kubernetes objects"
    timeout_s: ClassVar[float] = 2400.0
    reply: ClassVar[type[Event]] = ObjectsApplied

    def ask(self, draft: InstantiateCnfDraft) -> ApplyObjects:
        """Ask for the objects."""
        return ApplyObjects(
            vnf_instance_id=draft.vnf_instance_id,
            package=draft.package,
            vim=draft.vim,
            def_files=draft.def_files,
            namespace=draft.namespace,
            multi_namespace=draft.multi_namespace,
            adopt=draft.adopt,
            vdus=draft.vdus,
            parameters=draft.parameters,
            wait_timeout_s=draft.wait_timeout_s,
        )

    def fold(self, draft: InstantiateCnfDraft, reply: ObjectsApplied) -> InstantiateCnfDraft:
        """Keep what was applied."""
        release = Release(namespace=reply.namespace, objects=reply.objects, pods=reply.pods)
        return draft.model_copy(update={"release": release})

    def keep_remains(self, draft: InstantiateCnfDraft, remains: Mapping[str, object]) -> InstantiateCnfDraft:
        """Keep what was applied before it failed."""
        return self.fold(draft, ObjectsApplied.model_validate(remains))

    def forget(self, draft: InstantiateCnfDraft) -> InstantiateCnfDraft:
        """The objects are gone."""
        return draft.model_copy(update={"release": None})

    def undo(self, draft: InstantiateCnfDraft) -> DeleteObjects:
        """Delete what the inventory lists, applied or half applied."""
        return DeleteObjects(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim)


class DeleteCnfObjects(Step[TerminateCnfDraft, ObjectsDeleted]):
    """Delete everything in the CNF's inventory, in reverse order (capi.md CR-023).

    Again: safe; what is gone is gone.
    """

    name: ClassVar[str] = "delete_objects"
    title: ClassVar[str] = "Delete the Kubernetes objects"
    timeout_s: ClassVar[float] = 2400.0
    reply: ClassVar[type[Event]] = ObjectsDeleted

    def ask(self, draft: TerminateCnfDraft) -> DeleteObjects:
        """Ask for the deletion; FORCEFUL does not wait for pods to end."""
        return DeleteObjects(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            grace_period_s=0.0 if draft.is_forceful else (draft.graceful_wait_s or None),
            force=draft.is_forceful,
        )

    def fold(self, draft: TerminateCnfDraft, reply: ObjectsDeleted) -> TerminateCnfDraft:
        """Nothing is left."""
        return draft.model_copy(update={"is_gone": True})

    def undo(self, draft: TerminateCnfDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
