"""The stored automatic actions. A write names the revision that it expects: the loser of a race reads again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import AutomaticDecided
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import derived_id
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Index, Op, Query, Sort, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.automation.domain.action import (
    COLLECTION,
    DECIDED,
    DUE,
    ENDED,
    FACTS,
    KEY,
    NUMBER,
    PENDING,
    Action,
)
from kubevnfm_lcm_api.event_chain import SOURCE

log = structlog.get_logger()

INDEXES: Final = {
    COLLECTION: [
        Index(["state", "createdAt"]),
        Index(["vnfInstanceId", "state", "createdAt"]),
        Index(["vnfInstanceId", KEY, NUMBER]),
        Index(["vnfInstanceId", DECIDED]),
        Index(["vnfInstanceId", DUE]),
        Index([DUE]),
        Index([FACTS, NUMBER]),
        Index(["endedAt"]),
    ]
}
_BATCH: Final = 100
_MOST_EARLIER: Final = 1000
"""The budget of an hour is at most this."""


class StoredActions:
    """Finds and writes the actions."""

    def __init__(self, store: DocumentStore, outbox: Outbox, clock: Clock) -> None:
        self._store, self._outbox, self._clock = store, outbox, clock

    async def get(self, action_id: str) -> tuple[Stored, Action]:
        """Return an action. Raises NotFound."""
        stored = await self._store.get(COLLECTION, action_id)
        if stored is None:
            raise NotFound(f"automatic action {action_id} does not exist")
        return stored, Action.from_document(stored.body)

    async def newest(self, instance_id: str, key: str) -> tuple[Stored, Action] | None:
        """Return the newest action that does this to an instance; None if there is none."""
        query = Query(
            AllOf([*by(vnfInstanceId=instance_id).filters, Compare(KEY, Op.EQ, [key])]),
            sort=Sort(NUMBER, descending=True),
            limit=1,
        )
        found = await self._store.find(COLLECTION, query)
        return (found[0], Action.from_document(found[0].body)) if found else None

    async def asked_by(self, fact: str) -> Action | None:
        """Return the newest action that has this trigger; None if there is none."""
        query = Query(Compare(FACTS, Op.EQ, [fact]), sort=Sort(NUMBER, descending=True), limit=1)
        found = await self._store.find(COLLECTION, query)
        return Action.from_document(found[0].body) if found else None

    async def open_by_time(self) -> Sequence[tuple[str, str]]:
        """Return ids of the first actions that have not ended, and when each is to be examined, the longest overdue first."""
        query = Query(Compare(DUE, Op.GT, [""]), sort=Sort(DUE), limit=_BATCH, exclude=("triggers", "leftOut", FACTS))
        return [(each.id, each.body["internal"]["dueAt"]) for each in await self._store.find(COLLECTION, query)]

    async def open_of(self, instance_id: str) -> Sequence[str]:
        """Return the ids of the actions of an instance that have not ended."""
        query = Query(
            AllOf([*by(vnfInstanceId=instance_id).filters, Compare(DUE, Op.GT, [""])]),
            sort=Sort(DUE),
            limit=_BATCH,
            exclude=("triggers", FACTS),
        )
        return [each.id for each in await self._store.find(COLLECTION, query)]

    async def decided_since(self, instance_id: str, start: datetime) -> Sequence[Action]:
        """Return the actions of an instance that were decided since then, the newest first."""
        since = Compare(DECIDED, Op.GTE, [rfc3339(start)])
        query = Query(
            AllOf([*by(vnfInstanceId=instance_id).filters, since]),
            sort=Sort(DECIDED, descending=True),
            limit=_MOST_EARLIER,
            exclude=(FACTS,),
        )
        return [Action.from_document(each.body) for each in await self._store.find(COLLECTION, query)]

    async def insert(self, action: Action) -> None:
        """Store a new action. Raises AlreadyExists."""
        await self._outbox.insert(COLLECTION, action.id, action.body)
        log.info(
            "automatic_action_asked", **_facts(action), trigger=action.triggers[0].kind, text=action.triggers[0].text
        )

    async def write(self, stored: Stored, action: Action) -> Stored:
        """Write a changed action, with the event of its decision. Raises RevisionConflict."""
        before = Action.from_document(stored.body)
        is_decided = before.state in PENDING and action.state not in PENDING
        written = await self._outbox.replace(
            COLLECTION,
            stored.id,
            action.body,
            if_revision=stored.revision,
            events=[_decided(action)] if is_decided else [],
        )
        if action.state != before.state:
            reason = action.reason or (action.waiting.text if action.waiting is not None else action.text)
            log.info("automatic_action_changed", **_facts(action), state=action.state, reason=reason)
        return written

    async def remove_old(self, after: timedelta) -> None:
        """Remove actions that have ended so long ago. Raises StoreUnavailable."""
        before = rfc3339(self._clock.now() - after)
        await self._store.delete_many(COLLECTION, Compare("endedAt", Op.LT, [before]))


def _facts(action: Action) -> dict[str, str]:
    return {"action_id": action.id, "vnf_instance_id": action.vnf_instance_id, "operation": action.operation}


def _decided(action: Action) -> Envelope[Message]:
    assert action.state == "STARTED" or action.state in ENDED
    data = AutomaticDecided.model_validate(
        {
            "action_id": action.id,
            "vnf_instance_id": action.vnf_instance_id,
            "operation": action.operation,
            "state": "STARTED" if action.operation_id is not None else action.state,
            "reason": action.reason or action.text,
            "vnf_lcm_op_occ_id": action.operation_id or "",
        }
    )
    event_id = derived_id("automatic-decided", action.id, action.created_at)
    return Envelope(data=data, source=SOURCE, id=event_id, subject=action.vnf_instance_id)
