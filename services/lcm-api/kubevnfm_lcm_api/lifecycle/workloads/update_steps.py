"""Steps that infra-k8s does to bring a workload cluster to another package (capi.md chapter 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command, Event
from kubevnfm_events.capi import AddonsApplied, AddonsPart, ApplyAddons, ClusterUpdated, UpdateCluster, UpdatePart

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.workloads.replacing import ReplaceWorkloadDraft


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

    def fold(self, draft: ReplaceWorkloadDraft, reply: AddonsApplied) -> None:
        """Nothing to keep."""

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
