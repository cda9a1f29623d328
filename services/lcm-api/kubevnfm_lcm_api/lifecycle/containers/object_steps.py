"""Steps that infra-k8s does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from kubevnfm_events import Command, Event, PackageRef
from kubevnfm_events.objects import (
    ApplyObjects,
    DeleteObjects,
    ObjectsApplied,
    ObjectsDeleted,
    ObjectsUpdated,
    UpdateObjects,
)

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.management_steps import record_changed_providers
from kubevnfm_lcm_api.lifecycle.containers.modifying import ModifyCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.step import KeepsRemains, N, Plan, R, Step

_OBJECTS_TIMEOUT_S: Final = 2400.0
"""infra-k8s waits for readiness up to 30 minutes by itself (capi.md CR-024); the rest is for reading and applying."""
_APPLY_S: Final = 600.0
"""The time to read and apply the manifests, in addition to a wait that the request asks for."""


@dataclass(frozen=True)
class AwaitedObjects(KeepsRemains[N, R]):
    """The common part: objects that must be ready within a time that the instantiate request gives."""

    wait_timeout_s: float | None = None
    """How long to wait for readiness; None: infra-k8s' own limit."""

    base_timeout_s: ClassVar[float] = _OBJECTS_TIMEOUT_S

    @property
    def timeout_s(self) -> float:
        """The wait that the request asks for, and the time to apply."""
        return max(self.base_timeout_s, (self.wait_timeout_s or 0.0) + _APPLY_S)


@dataclass(frozen=True)
class ApplyCnfObjects(AwaitedObjects[InstantiateCnfDraft | HealCnfDraft, ObjectsApplied]):
    """Apply the CNF's manifests in order and wait until all is ready (capi.md chapter 3).

    Adds: the release.
    Again: safe; what was applied carries the instance's label and is adopted.
    Fails: unknown kinds, foreign objects, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "apply_objects"
    command: ClassVar[type[Command]] = ApplyObjects
    label: ClassVar[str] = "Apply the Kubernetes objects"

    def ask(self, draft: InstantiateCnfDraft | HealCnfDraft) -> ApplyObjects:
        return ApplyObjects(
            **vars(draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            adopt=draft.adopt,
            parameters=draft.parameters,
            wait_timeout_s=self.wait_timeout_s,
        )

    def fold(self, draft: InstantiateCnfDraft | HealCnfDraft, reply: ObjectsApplied) -> Draft:
        """Keep what was applied."""
        return draft.with_release(Release.from_applied(reply))

    def extend(self, draft: InstantiateCnfDraft | HealCnfDraft, plan: Plan[InstantiateCnfDraft | HealCnfDraft]) -> None:
        """Have the VIM show the providers of Cluster API, if they are others now."""
        record_changed_providers(draft, plan)

    def undone(self, draft: InstantiateCnfDraft | HealCnfDraft, reply: Event) -> Draft:
        """The objects are deleted, except what is left."""
        assert isinstance(reply, ObjectsDeleted)
        return draft.without_objects(reply.left)

    def undo(self, draft: InstantiateCnfDraft | HealCnfDraft) -> DeleteObjects:
        """Delete everything in the inventory, also if the objects were applied only in part."""
        # Without a grace period: the pods end in their own time, as nothing hurries a rollback.
        return DeleteObjects(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim)


@dataclass(frozen=True)
class UpdateCnfObjects(AwaitedObjects[ModifyCnfDraft, ObjectsUpdated]):
    """Change ConfigMaps, Secrets and images to those of the package; restart what uses them.

    Adds: the pods that run now.
    Again: safe; what is changed and restarted already is left alone.
    Fails: a file that replaces none, a new object, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "update_objects"
    command: ClassVar[type[Command]] = UpdateObjects
    label: ClassVar[str] = "Change the configuration and images of the containers"

    def ask(self, draft: ModifyCnfDraft) -> UpdateObjects:
        return self._command(draft, draft.wanted_package, draft.config_files)

    def fold(self, draft: ModifyCnfDraft, reply: ObjectsUpdated) -> Draft:
        """Keep what runs now."""
        return draft.updated(Release.from_applied(reply), reply.def_files)

    def extend(self, draft: ModifyCnfDraft, plan: Plan[ModifyCnfDraft]) -> None:
        """Have the VIM show the providers of Cluster API, if they are others now."""
        record_changed_providers(draft, plan)

    def undone(self, draft: ModifyCnfDraft, reply: Event) -> Draft:
        """Keep what runs after the reversal."""
        assert isinstance(reply, ObjectsUpdated)
        return self.fold(draft, reply)

    def undo(self, draft: ModifyCnfDraft) -> UpdateObjects:
        """Ask for the contents and images of the earlier package."""
        return self._command(draft, draft.package, ())

    def _command(self, draft: ModifyCnfDraft, package: PackageRef, config_files: tuple[str, ...]) -> UpdateObjects:
        return UpdateObjects(
            **{**vars(draft.order), "package": package},
            vnf_instance_id=draft.vnf_instance_id,
            config_files=config_files,
            before=draft.package,
            wait_timeout_s=self.wait_timeout_s,
        )


@dataclass(frozen=True)
class DeleteCnfObjects(Step[TerminateCnfDraft | HealCnfDraft, ObjectsDeleted]):
    """Delete everything in the CNF's inventory, in reverse order (capi.md CR-023).

    Again: safe; what is deleted already is left alone.
    """

    grace_period_s: float | None = None
    """How long pods may take to end; None: their own terminationGracePeriodSeconds; 0: FORCEFUL, at once."""
    is_forced: bool = False
    """FORCEFUL: does not wait for pods to end."""
    hooks_s: float = 0.0
    """The time that hooks before and after the deletion may take."""

    kind: ClassVar[str] = "delete_objects"
    command: ClassVar[type[Command]] = DeleteObjects
    label: ClassVar[str] = "Delete the Kubernetes objects"
    base_timeout_s: ClassVar[float] = _OBJECTS_TIMEOUT_S

    @property
    def timeout_s(self) -> float:
        """Pods may take the whole grace period, and hooks their time."""
        return self.base_timeout_s + (self.grace_period_s or 0.0) + self.hooks_s

    def ask(self, draft: TerminateCnfDraft | HealCnfDraft) -> DeleteObjects:
        return DeleteObjects(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            grace_period_s=self.grace_period_s,
            force=self.is_forced,
            force_remove_finalizers=draft.force_remove_finalizers,
            gives_up_waiting=draft.gives_up_waiting,
        )

    def fold(self, draft: TerminateCnfDraft | HealCnfDraft, reply: ObjectsDeleted) -> Draft:
        """Forget the objects, except those that a FORCEFUL termination leaves."""
        return draft.without_release(reply.left)

    def undo(self, draft: TerminateCnfDraft | HealCnfDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
