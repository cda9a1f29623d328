"""Puts the plan of an operation in the place of the one with which it has waited for its package (multicloud.md MC-122)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord

_KEPT: Final = frozenset({"currentOperation", "lastNews"})
"""The internals of the instance that the operation has set since."""
_PLANNED_IN: Final = frozenset({OperationState.PROCESSING, OperationState.FAILED_TEMP})
"""FAILED_TEMP: its time limit passed meanwhile, and it may be retried."""


@dataclass(frozen=True)
class Replanning:
    """The two writes, the instance first: after a crash in between, the step that does this is done again."""

    store: DocumentStore
    ring: KeyRing

    @repeat_lost_writes
    async def write_instance(self, instance: InstanceRecord, operation_id: str, claims: Mapping[str, Any]) -> None:
        """Write an instance with its package; ``claims``: further fields of it."""
        stored = await self.store.get(instances.COLLECTION, instance.vnf.id)
        if stored is None or stored.body["internal"].get("currentOperation") != operation_id:
            return
        body = instance.document(self.ring)
        internal = body.pop("internal")
        # Others may have written there meanwhile, such as a suspension: that stays.
        metadata = {**(body.get("metadata") or {}), **(stored.body.get("metadata") or {})}
        fields = {name: value for name, value in body.items() if name != "createdAt"}
        fields |= {f"internal/{name}": value for name, value in internal.items() if name not in _KEPT}
        fields |= claims
        if metadata:
            fields["metadata"] = metadata
        await self.store.update(instances.COLLECTION, stored.id, fields, if_revision=stored.revision)

    @repeat_lost_writes
    async def write_occurrence(self, planned: OccurrenceRecord, *, waiting_plan: str) -> None:
        """Write the operation with the steps after the one that has waited; not if its plan is another one than ``waiting_plan``,
        and not once it is rolled back or at its end: its draft says what the end does, such as removing the instance.
        """
        stored = await self.store.get(occurrences.COLLECTION, planned.occ.id)
        if stored is None or stored.body["internal"]["plan"] != waiting_plan:
            return
        if stored.body["operationState"] not in _PLANNED_IN:
            return
        before = OccurrenceRecord.from_document(stored.body)
        waited = [step.id for step in before.steps]
        later = [step if step.after else step.model_copy(update={"after": tuple(waited)}) for step in planned.steps]
        record = planned.model_copy(
            update={
                "steps": (*before.steps, *later),
                "occ": before.occ.model_copy(update={"operation_params": planned.occ.operation_params}),
                "follows": before.follows,
                "ending": before.ending,
                "states": before.states,
                "gone_steps": before.gone_steps,
            }
        )
        document = record.document(self.ring)
        fields = {f"internal/{name}": value for name, value in document["internal"].items()}
        fields["operationParams"] = document["operationParams"]
        await self.store.update(occurrences.COLLECTION, stored.id, fields, if_revision=stored.revision)
