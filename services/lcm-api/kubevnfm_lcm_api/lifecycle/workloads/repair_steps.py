"""The step that repairs the objects of a workload cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.objects import ObjectsRepaired, RepairObjects

from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.workloads.healing import RepairWorkloadDraft


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
        """Ask for the repair."""
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
