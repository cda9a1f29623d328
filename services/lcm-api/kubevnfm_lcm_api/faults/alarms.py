"""The list of alarms: it follows the faults of each object, by state alone.

A look reads the alarms of an object that are not cleared, then its state, and raises, changes and clears alarms until both agree.
In this order a look clears only what it knew before it read the state. A later change has a look of its own, or is found by the
next round. A look repeats until it has nothing to write, so two looks at a time end in the same list. A unique index lets one of
them raise an alarm: two alarms of one fault cannot be open at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_events.faults import AlarmChanged, AlarmListRebuilt
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import Conflict, NotFound
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.faults import AckState
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Query, Sort, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api import alarm_marks
from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.faults.domain.fault import Fault, Findings, ManagedObject
from kubevnfm_lcm_api.lifecycle.core.instance import VnfFacts

log = structlog.get_logger()

COLLECTION: Final = alarm_marks.COLLECTION
OPEN: Final = "internal/open"
"""The path of the key that an alarm has until it is cleared."""
ROOT: Final = "internal/root"
HEARD: Final = "internal/external/heardAt"
"""The path of the time at which a monitoring system has last reported the fault of an alarm that is not cleared."""
STATE: Final = "internal/state"
"""The path of ``OPEN`` or ``CLEARED``."""
PUBLIC: Final = Exists("alarmRaisedTime")
"""Finds alarms: the collection has one other document, its mark."""
_MARK: Final = "list"
"""The id of the document that is there as long as the list is: without it the list was lost, or is new."""
_MOST_LOOKS: Final = 5
"""If a state changes more often during a look, the next round continues."""
_MOST_CORRELATED: Final = 1000
_LONGEST_CAUSE: Final = 128

Look = Callable[[], Awaitable[Findings]]
"""Reads the state of an object, and returns its faults."""


class Alarms:
    """Raises, changes, clears and acknowledges alarms."""

    def __init__(self, *, store: DocumentStore, outbox: Outbox, clock: Clock) -> None:
        self._store, self._outbox, self._clock = store, outbox, clock

    # --- by faults ----------------------------------------------------------------------------------------------------

    async def follow(self, object_id: str, look: Look) -> None:
        """Have the alarms of an object agree with its faults. Raises what ``look`` raises, StoreUnavailable."""
        for _ in range(_MOST_LOOKS):
            known = await self.open_of(object_id)
            findings = await look()
            if not await self._settle(known, findings):
                return

    async def open_of(self, *object_ids: str) -> Mapping[str, Stored]:
        """Return the alarms of objects that are not cleared, by key: one read."""
        # By the state, which is in the index: an object that flaps has thousands of cleared ones.
        of_them = Compare("managedObjectId", Op.IN, object_ids)
        found = await self._store.find(COLLECTION, Query(AllOf([of_them, by(**{STATE: "OPEN"})]))) if object_ids else ()
        return {each.body["internal"]["open"]: each for each in found}

    async def open_of_each(self, object_ids: Sequence[str]) -> Mapping[str, Mapping[str, Stored]]:
        """Return the same for each object: one read."""
        found: dict[str, dict[str, Stored]] = {each: {} for each in object_ids}
        for key, each in (await self.open_of(*object_ids)).items():
            found[each.body["managedObjectId"]][key] = each
        return found

    async def _settle(self, known: Mapping[str, Stored], findings: Findings) -> bool:
        """Write what differs; return whether anything was to be written."""
        work = _work(known, findings)
        is_changed = bool(work.changed or work.ended)
        for fault in work.new:
            is_changed |= await self.raise_one(findings.about, fault)
        for stored, changes, fault in work.changed:
            await self._change(stored, changes, fault.root)
        for stored in work.ended:
            await self.clear(stored)
        return is_changed

    async def raise_one(self, about: ManagedObject, fault: Fault) -> bool:
        """Raise an alarm, unless another process has raised it; return whether it is new."""
        now, key = rfc3339(self._clock.now()), fault.key(about.id)
        number = 0
        while True:
            # The same fault may come back with the same beginning: its earlier alarm, which is cleared, stays as it is.
            alarm_id = derived_id("alarm", key, fault.since, str(number))
            earlier = await self._store.get(COLLECTION, alarm_id)
            if earlier is None:
                break
            if "open" in earlier.body["internal"]:
                return False
            number += 1
        event_id = derived_id("alarm-event", alarm_id, "RAISED", "0")
        body = {
            "id": alarm_id,
            "managedObjectId": about.id,
            "alarmRaisedTime": now,
            "ackState": "UNACKNOWLEDGED",
            "eventTime": fault.since,
            "faultType": fault.type,
            "isRootCause": fault.is_root,
            **_of_fault(fault),
            "internal": {
                "open": key,
                "state": "OPEN",
                "kind": about.kind,
                "facts": about.facts.model_dump(mode="json", by_alias=True, exclude={"vim_ids"}),
                "updatedAt": now,
                "events": 1,
                "lastEvent": {"id": event_id, "at": now},
                **({"root": fault.root} if fault.root is not None else {}),
                **({"external": {"heardAt": now, "object": about.id}} if fault.fingerprint is not None else {}),
            },
        }
        try:
            await self._outbox.insert(
                COLLECTION, alarm_id, body, events=[_event(body, "RAISED", event_id, None)]
            )  # fmt: skip
        except AlreadyExists:
            return False
        log.warning("alarm_raised", alarm_id=alarm_id, object_id=about.id, fault=fault.type, severity=fault.severity)
        return True

    async def _change(self, stored: Stored, changes: JsonObject, root: str | None) -> None:
        more: JsonObject = {"alarmChangedTime": rfc3339(self._clock.now()), **changes}
        if root is not None:
            more[ROOT] = root
        await self._write(stored, more, "CHANGED", unset=[name for name in _OPTIONAL if name not in changes])

    async def clear(self, stored: Stored, at: str | None = None) -> bool:
        """Clear an alarm; return whether it was written: False if another process was faster. ``at``: when the fault ended."""
        cleared: JsonObject = {"alarmClearedTime": at or rfc3339(self._clock.now()), STATE: "CLEARED"}
        if not await self._write(stored, cleared, "CLEARED", unset=[OPEN, HEARD, alarm_marks.EXTERNAL_OBJECT]):
            return False
        log.info("alarm_cleared", alarm_id=stored.id, object_id=stored.body["managedObjectId"])
        return True

    async def _write(self, stored: Stored, changes: JsonObject, change: str, *, unset: list[str]) -> bool:
        """Write an alarm with its event. If another process was faster (False), the look that follows finds what it has written."""
        internal = stored.body["internal"]
        now, number = rfc3339(self._clock.now()), internal["events"]
        event_id = derived_id("alarm-event", stored.id, change, str(number))
        own = {
            "internal/updatedAt": now,
            "internal/events": number + 1,
            "internal/lastEvent": {"id": event_id, "at": now},
        }
        shown = {name: value for name, value in {**stored.body, **changes}.items() if name not in unset}
        try:
            await self._outbox.update(
                COLLECTION,
                stored.id,
                {**changes, **own},
                unset=unset,
                if_revision=stored.revision,
                events=[_event(shown, change, event_id, internal["lastEvent"])],
            )
        except RevisionConflict:
            log.debug("alarm_written_meanwhile", alarm_id=stored.id)
            return False
        return True

    # --- by callers -----------------------------------------------------------------------------------------------------

    async def get(self, alarm_id: str) -> Stored:
        """Return an alarm. Raises NotFound."""
        stored = await self._store.get(COLLECTION, alarm_id)
        if stored is None or "alarmRaisedTime" not in stored.body:
            raise NotFound(f"alarm {alarm_id} does not exist")
        return stored

    async def acknowledge(self, alarm_id: str, state: AckState, *, check: Callable[[Stored], None]) -> Stored:
        """Set ``ackState``; ``check`` raises if the caller has seen another revision. Raises NotFound, Conflict."""
        while True:
            stored = await self.get(alarm_id)
            check(stored)
            if stored.body["ackState"] == state:
                raise Conflict(f"alarm {alarm_id} is {state} already")
            now = rfc3339(self._clock.now())
            changes = {"ackState": state, "internal/updatedAt": now}
            if state == "ACKNOWLEDGED":
                changes["alarmAcknowledgedTime"] = now
            try:
                return await self._store.update(
                    COLLECTION,
                    alarm_id,
                    changes,
                    unset=[] if state == "ACKNOWLEDGED" else ["alarmAcknowledgedTime"],
                    if_revision=stored.revision,
                )
            except RevisionConflict:
                continue

    async def caused_by(self, alarm_id: str) -> list[str]:
        """Return the ids of the alarms that an alarm is the root cause of, the first of them."""
        wanted = Compare(ROOT, Op.EQ, [alarm_id])
        # Without the large attributes: a page may show many root causes.
        query = Query(wanted, limit=_MOST_CORRELATED, exclude=("faultDetails", "internal"))
        found = await self._store.find(COLLECTION, query)
        return [each.id for each in found]

    # --- the list as a whole --------------------------------------------------------------------------------------------

    async def all_open(self) -> list[Stored]:
        """Return all alarms that are not cleared, without what they say."""
        found: list[Stored] = []
        after: tuple[str, str] | None = None
        while True:
            query = Query(
                by(**{STATE: "OPEN"}), sort=Sort("alarmRaisedTime"), after=after, limit=500, exclude=("faultDetails",)
            )
            page = await self._store.find(COLLECTION, query)
            found += page
            if len(page) < 500:
                return found
            after = (page[-1].body["alarmRaisedTime"], page[-1].id)

    async def is_new(self) -> bool:
        """Return whether the list was never complete, or was lost."""
        return await self._store.get(COLLECTION, _MARK) is None

    async def note_complete(self, number: int) -> None:
        """Note that the list has all alarms; subscribers are notified that it was rebuilt: a new list has none yet."""
        mark = {"completeAt": rfc3339(self._clock.now())}
        event: Envelope[Message] = Envelope(data=AlarmListRebuilt(alarms=number), source=SOURCE)
        try:
            await self._outbox.insert(COLLECTION, _MARK, mark, events=[event])
        except AlreadyExists:
            return

    async def remove_old(self, after: timedelta) -> None:
        """Remove alarms that were cleared so long ago. Raises StoreUnavailable."""
        before = rfc3339(self._clock.now() - after)
        await self._store.delete_many(COLLECTION, Compare("alarmClearedTime", Op.LT, [before]))


@dataclass(frozen=True)
class _Work:
    """The writes after which alarms agree with faults."""

    new: Sequence[Fault]
    changed: Sequence[tuple[Stored, JsonObject, Fault]]
    ended: Sequence[Stored]


def agrees(known: Mapping[str, Stored], findings: Findings) -> bool:
    """Return whether the open alarms of an object, by key, agree with its faults."""
    return _work(known, findings) == _Work([], [], [])


def _work(known: Mapping[str, Stored], findings: Findings) -> _Work:
    wanted = {fault.key(findings.about.id): fault for fault in findings.faults}
    changed = [
        (known[key], changes, fault)
        for key, fault in wanted.items()
        if key in known and (changes := _changes(known[key].body, fault)) is not None
    ]
    ended = [each for key, each in known.items() if key not in wanted and _has_ended(each.body, findings)]
    return _Work([fault for key, fault in wanted.items() if key not in known], changed, ended)


def _has_ended(body: JsonMapping, findings: Findings) -> bool:
    """Return whether an alarm whose fault was not found is to be cleared."""
    if "external" in body["internal"]:
        return findings.is_gone  # otherwise its monitoring system reports the end
    until = findings.undecided_until
    is_undecided = body["faultType"] in findings.undecided
    return not is_undecided or (until is not None and body["eventTime"] < rfc3339(until))


_OPTIONAL: Final = ("rootCauseFaultyResource", "faultDetails", "vnfcInstanceIds")


def _of_fault(fault: Fault) -> JsonObject:
    """Return the attributes of an alarm that may change while it lasts."""
    resource = fault.resource.model_dump(mode="json", by_alias=True, exclude_none=True) if fault.resource else None
    found = {
        "perceivedSeverity": fault.severity,
        "eventType": fault.event_type,
        "probableCause": fault.cause[:_LONGEST_CAUSE],
        "rootCauseFaultyResource": resource,
        "faultDetails": [bounded(each) for each in fault.details if each] or None,
        "vnfcInstanceIds": list(fault.vnfc_ids) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _changes(body: JsonMapping, fault: Fault) -> JsonObject | None:
    """Return the present attributes of a fault if its alarm says something else; a cause that has ended stays its cause."""
    present = _of_fault(fault)
    known = {name: body[name] for name in (*present, *_OPTIONAL) if name in body}
    is_same = known == present and fault.root in {None, body["internal"].get("root")}
    return None if is_same else present


def _event(body: JsonMapping, change: str, event_id: str, before: JsonMapping | None) -> Envelope[Message]:
    internal = body["internal"]
    changed = AlarmChanged.model_validate(
        {
            "alarm_id": body["id"],
            "change": change,
            "managed_object_id": body["managedObjectId"],
            "alarm": shown_alarm(body),
            "is_of_vnf": internal["kind"] == "vnf",
            **VnfFacts.model_validate(internal["facts"]).model_dump(exclude={"vim_ids"}),
            **({"follows": before["id"], "follows_at": before["at"]} if before is not None else {}),
        }
    )
    return Envelope(data=changed, source=SOURCE, id=event_id, subject=body["managedObjectId"])


def shown_alarm(body: JsonMapping, caused: Sequence[str] = ()) -> JsonObject:
    """Return SOL003's Alarm without links; ``caused``: the alarms that follow from it, if it is a root cause."""
    shown = {name: value for name, value in body.items() if "/" not in name and name != "internal"}
    root = body["internal"].get("root") or body.get(ROOT)
    if root is not None:
        shown["correlatedAlarmIds"] = [root]
    elif caused:
        shown["correlatedAlarmIds"] = list(caused)
    return shown
