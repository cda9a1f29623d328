"""What people watch: the nodes' progress within an operation, kept from the events that the services tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Query, Sort, by

from kubevnfm_lcm_api.lifecycle.domain.occurrence import OccurrenceRecord

COLLECTION: Final = "operation_progress"
_OPEN: Final = frozenset({"started", "progressed"})


class Progress:
    """One small document for each operation, step, node and task: written as events come, read by operation."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def store_event(self, delivery: Delivery) -> Verdict:
        """Store one TaskProgressed; news older than what is stored is dropped."""
        envelope = delivery.envelope
        told = envelope.data
        if not isinstance(told, TaskProgressed) or not envelope.operationid:
            return Ack()
        key = derived_id("progress", envelope.operationid, envelope.stepid, told.node, told.task)
        moment = rfc3339(envelope.time)
        body: dict[str, Any] = {
            "operationId": envelope.operationid,
            "step": envelope.stepid,
            "attempt": envelope.attempt,
            "node": told.node,
            "task": told.task,
            "state": told.state,
            "message": told.message,
            "updatedAt": moment,
            **({"done": told.done, "total": told.total} if told.total is not None else {}),
            **({"durationS": told.duration_s} if told.duration_s is not None else {}),
        }
        if told.state == "started":
            body["startedAt"] = moment
        for _ in range(10):
            stored = await self._store.get(COLLECTION, key)
            try:
                if stored is None:
                    await self._store.insert(COLLECTION, key, body)
                elif stored.body["updatedAt"] <= moment:
                    merged = {**({"startedAt": stored.body["startedAt"]} if "startedAt" in stored.body else {}), **body}
                    await self._store.replace(COLLECTION, key, merged, if_revision=stored.revision)
            except (AlreadyExists, RevisionConflict):
                continue
            break
        return Ack()

    async def operation_tasks(self, record: OccurrenceRecord) -> Sequence[dict[str, Any]]:
        """Return what is known of the operation's tasks, oldest news first.

        A node's task that has not told its end was cancelled, once its step has ended or was asked again: whoever
        worked on it was stopped, or is gone.
        """
        found = await self._store.find(COLLECTION, Query(by(operationId=record.occ.id), sort=Sort("updatedAt")))
        attempts = {step.id: step.attempt for step in record.running}
        shown = [{name: value for name, value in stored.body.items() if name != "operationId"} for stored in found]
        for task in shown:
            is_at_work = task["step"] in attempts and task.get("attempt", 0) == attempts[task["step"]]
            if task["node"] and task["state"] in _OPEN and not is_at_work:
                task["state"] = "cancelled"
        return shown
