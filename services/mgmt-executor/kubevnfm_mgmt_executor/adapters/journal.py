"""The journal of tasks in the store's collection ``tasks``: one document for each task of a VNFC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.metrics import Metrics
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, AnyOf, Compare, Filter, Index, Op, by

from kubevnfm_mgmt_executor.adapters.task_metrics import TaskMetrics
from kubevnfm_mgmt_executor.domain.errors import ClaimLost
from kubevnfm_mgmt_executor.domain.ports import Claim, Earlier, TaskKey

TASKS: Final = "tasks"
INDEXES: Final = (Index(["vnfInstanceId", "vnfcId"]),)


class StoredJournal:
    """Writes under the claim's fencing number, so a worker that lost its command cannot overwrite its successor."""

    def __init__(self, store: DocumentStore, clock: Clock, counts: TaskMetrics | None = None) -> None:
        self._store, self._clock = store, clock
        self._counts = counts or TaskMetrics(Metrics())

    async def last(self, key: TaskKey) -> Earlier | None:
        stored = await self._store.get(TASKS, _id(key))
        return None if stored is None else _earlier(stored.body)

    async def begin(self, key: TaskKey, claim: Claim) -> Earlier | None:
        started = {
            "state": "running",
            "operationId": claim.operation_id,
            "messageId": claim.message_id,
            "fencing": claim.fencing,
            "startedAt": rfc3339(self._clock.now()),
        }
        stored = await self._store.get(TASKS, _id(key))
        if stored is None:
            identity = {
                "vnfInstanceId": key.vnf_instance_id,
                "vnfcId": key.vnfc_id,
                "node": key.node,
                "task": key.task,
                "attempts": 1,
                "facts": {},
            }
            try:
                await self._store.insert(TASKS, _id(key), {**identity, **started})
            except AlreadyExists as error:
                # Another worker has inserted the record since the read. Which of the two claims is newer is not known
                # here, so this try ends, and its repeat compares the fencing numbers.
                raise ClaimLost(f"task {key.task} of {key.node}: started by another worker") from error
            return None
        earlier = _earlier(stored.body)
        # The end of the earlier try must not stay in the record of this one. The revision makes the write fail if the
        # record has changed since `earlier` was read, because the task decides by `earlier`.
        await self._write(
            key,
            claim,
            {**started, "node": key.node, "attempts": earlier.attempts + 1},
            unset=["finishedAt", "durationS", "error"],
            if_revision=stored.revision,
        )
        return earlier

    async def done(self, key: TaskKey, claim: Claim, *, facts: Mapping[str, object], duration_s: float) -> None:
        await self._write(key, claim, {"state": "done", "facts": dict(facts), **self._end(duration_s)})
        self._counts.count(key.task, "done", duration_s)

    async def failed(self, key: TaskKey, claim: Claim, *, error: str, duration_s: float) -> None:
        await self._write(key, claim, {"state": "failed", "error": error, **self._end(duration_s)})
        self._counts.count(key.task, "failed", duration_s)

    def _end(self, duration_s: float) -> Mapping[str, object]:
        return {"finishedAt": rfc3339(self._clock.now()), "durationS": round(duration_s, 3)}

    async def _write(
        self,
        key: TaskKey,
        claim: Claim,
        fields: Mapping[str, object],
        *,
        unset: Sequence[str] = (),
        if_revision: int | None = None,
    ) -> None:
        # Fencing numbers are comparable within one command only, because each command counts its own claims.
        # Equal numbers are one claim, which writes `running` and later the end.
        mine: Filter = AnyOf(
            [Compare("messageId", Op.NEQ, [claim.message_id]), Compare("fencing", Op.LTE, [claim.fencing])]
        )
        try:
            await self._store.update(TASKS, _id(key), fields, unset=unset, if_revision=if_revision, where=mine)
        except RevisionConflict as error:
            raise ClaimLost(f"task {key.task} of {key.node}: another worker writes its journal") from error

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: Sequence[str] | None = None) -> None:
        await self._store.delete_many(TASKS, of_instance(vnf_instance_id, vnfc_ids))


def _earlier(body: Mapping[str, Any]) -> Earlier:
    return Earlier(state=body["state"], attempts=body["attempts"], facts=body.get("facts", {}))


def of_instance(vnf_instance_id: str, vnfc_ids: Sequence[str] | None) -> Filter:
    """Return the filter for an instance's documents, or those of some of its VNFCs."""
    instance = by(vnfInstanceId=vnf_instance_id)
    return instance if vnfc_ids is None else AllOf([instance, Compare("vnfcId", Op.IN, list(vnfc_ids))])


def _id(key: TaskKey) -> str:
    # Without the operation and the node's name: a retry, or a later operation on the same machine, finds the record.
    return derived_id("task", key.vnf_instance_id, key.vnfc_id, key.task)
