"""The progress of an operation's tasks, node by node, stored from the events that the services publish."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord

COLLECTION: Final = "operation_progress"
WAIT: Final = "wait"
"""The task of a command that is tried again, or waits by itself (`kubevnfm_worker.news`)."""
_WAITING: Final = re.compile(r"wait(?:ing|ed) since (\S{1,40}?): (.*)", re.DOTALL)
"""Its message."""
OPEN: Final = frozenset({"started", "progressed"})
"""The states of a task that has not ended."""
_UNFINISHED: Final = (*sorted(OPEN), "failed")
_MOST_UNFINISHED: Final = 5000
_WRITE_ATTEMPTS: Final = 10
"""Lost races before an event is dropped: progress is shown to people, and the next event replaces it."""


TIMES: Final = "obstacleTimes"
"""The attribute of a task with the time since when each of its obstacles is one; `obstacles_of` reads it."""
BEGUN: Final = "begunAt"
"""The attribute with the time at which the task was begun first at this attempt, also if a worker has died since."""
EARLIER: Final = "earlier"
"""The attribute with what is kept of earlier attempts and waits, the newest `_MOST_EARLIER` of them."""
_KEPT: Final = ("attempt", "state", BEGUN, "updatedAt", "code", "since", "tries")
_MOST_EARLIER: Final = 20


class Progress:
    """One small document for each operation, step, node and task; written with each event, read by operation."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def store_event(self, delivery: Delivery) -> Verdict:
        """Store one TaskProgressed; an event older than the stored one is dropped."""
        envelope = delivery.envelope
        event = envelope.data
        if not isinstance(event, TaskProgressed) or not envelope.operationid:
            return Ack()
        # A derived key: every event of the same task writes the same document, on whichever process it arrives.
        key = derived_id("progress", envelope.operationid, envelope.stepid, event.node, event.task)
        moment = rfc3339(envelope.time)
        begun = min(event.since or envelope.time, envelope.time - timedelta(seconds=event.duration_s or 0.0))
        body: dict[str, Any] = {
            "operationId": envelope.operationid,
            "step": envelope.stepid,
            "attempt": envelope.attempt,
            "node": event.node,
            "task": event.task,
            "state": event.state,
            "message": event.message,
            "updatedAt": moment,
            "saidAt": moment,
            BEGUN: rfc3339(begun),
            **({"done": event.done, "total": event.total} if event.total is not None else {}),
            **({"durationS": event.duration_s} if event.duration_s is not None else {}),
            **({"code": event.code} if event.code else {}),
            **({"obstacles": list(event.obstacles), TIMES: [moment] * len(event.obstacles)} if event.obstacles else {}),
            **({"since": rfc3339(event.since)} if event.since is not None else {}),
            **({"tries": event.tries} if event.tries is not None else {}),
        }
        if event.state == "started":
            body["startedAt"] = moment
        for _ in range(_WRITE_ATTEMPTS):
            stored = await self._store.get(COLLECTION, key)
            try:
                if stored is None:
                    await self._store.insert(COLLECTION, key, body)
                # The bus does not keep the order of events: a late "progressed" must not follow "finished", nor an earlier
                # attempt a later one.
                elif (stored.body.get("attempt", 0), stored.body["updatedAt"]) <= (envelope.attempt, moment):
                    await self._store.replace(COLLECTION, key, _merged(stored.body, body), if_revision=stored.revision)
            except (AlreadyExists, RevisionConflict):
                continue
            break
        return Ack()

    async def operation_tasks(self, record: OccurrenceRecord) -> Sequence[dict[str, Any]]:
        """Return the operation's tasks, the least recently changed first.

        A task of a node without a final event is shown as cancelled once its step has ended or was sent again: the
        worker that ran it was stopped or killed, and will not report its end.
        """
        return self._tasks(record, await self._stored(record))

    async def trace_of(self, record: OccurrenceRecord) -> Sequence[JsonObject]:
        """Return each try of each of the operation's tasks that is kept, with its attempt and times; no texts."""
        found = []
        for stored in await self._stored(record):
            place = {name: stored.body[name] for name in ("step", "node", "task")}
            present = {name: stored.body[name] for name in _KEPT if name in stored.body}
            found += [{**place, **each} for each in (*stored.body.get(EARLIER, ()), present)]
        return found

    async def _stored(self, record: OccurrenceRecord) -> Sequence[Stored]:
        return await self._store.find(COLLECTION, Query(by(operationId=record.occ.id), sort=Sort("updatedAt")))

    async def unfinished_tasks(self, records: Sequence[OccurrenceRecord]) -> Mapping[str, Sequence[dict[str, Any]]]:
        """Return the tasks of several operations that have not ended, or have failed, by operation: one read, the newest of very many.

        Each as `operation_tasks` returns it. A task that has ended well explains no state.
        """
        ids = [each.occ.id for each in records]
        if not ids:
            return {}
        wanted = AllOf([Compare("operationId", Op.IN, ids), Compare("state", Op.IN, _UNFINISHED)])
        newest = Query(wanted, sort=Sort("updatedAt", descending=True), limit=_MOST_UNFINISHED)
        by_operation: dict[str, list[Stored]] = {each: [] for each in ids}
        for stored in reversed(await self._store.find(COLLECTION, newest)):
            by_operation[stored.body["operationId"]].append(stored)
        return {each.occ.id: self._tasks(each, by_operation[each.occ.id]) for each in records}

    @staticmethod
    def _tasks(record: OccurrenceRecord, found: Sequence[Stored]) -> Sequence[dict[str, Any]]:
        attempts = {step.id: step.attempt for step in record.running}
        hidden = {"operationId", BEGUN, EARLIER}
        tasks = [{name: value for name, value in stored.body.items() if name not in hidden} for stored in found]
        for task in tasks:
            is_running = task["step"] in attempts and task.get("attempt", 0) == attempts[task["step"]]
            if task["node"] and task["state"] in OPEN and not is_running:
                task["state"] = "cancelled"
        return tasks


def obstacles_of(task: JsonObject) -> Sequence[tuple[str, str]]:
    """Return what a task that has not ended waits for, and since when: its obstacles if it has named some, or its message."""
    said = str(task.get("saidAt") or task.get("startedAt") or task.get("updatedAt") or "")
    if task.get("task") == WAIT:
        match = _WAITING.fullmatch(str(task.get("message", "")))
        since = str(task.get("since") or (match[1] if match is not None else said))
        return [(match[2] if match is not None else str(task.get("message", "")), since)]
    texts = task.get("obstacles") or []
    times = task.get(TIMES) or [said] * len(texts)
    return list(zip(texts, times, strict=True)) or [(str(task.get("message", "")), said)]


def _merged(before: JsonMapping, body: JsonObject) -> JsonObject:
    """Return the document of a task with a later event: its start, and since when it says what it says, stay."""
    earlier = {name: before[name] for name in ("startedAt",) if name in before and name not in body}
    is_same_attempt = before.get("attempt") == body["attempt"]
    # A new wait of the same command is another one.
    if is_same_attempt and before.get("since") == body.get("since"):
        earlier[BEGUN] = min(before.get(BEGUN, body[BEGUN]), body[BEGUN])
        tries = before.get(EARLIER, [])
    else:
        tries = [*before.get(EARLIER, []), {name: before[name] for name in _KEPT if name in before}]
    if tries:
        earlier[EARLIER] = tries[-_MOST_EARLIER:]
    is_same = is_same_attempt and before["message"] == body["message"]
    said = {"saidAt": before["saidAt"]} if is_same and "saidAt" in before else {}
    merged = {**body, **earlier, **said}
    if TIMES in body and is_same_attempt:
        known = dict(zip(before.get("obstacles", ()), before.get(TIMES, ()), strict=False))
        merged[TIMES] = [known.get(text, body["updatedAt"]) for text in body["obstacles"]]
    return merged
