"""Steps that infra-k8s does to repair a CNF or a workload cluster: what others have deleted or changed is applied again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_END
from kubevnfm_events.objects import ObjectsRepaired, RepairObjects

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.containers.phase_steps import RunCnfPhase
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.plan import Plan
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases


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
        """Ask for the repair."""
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
