"""Decides what becomes of an automatic action: its document and what is known of its VNF instance in, its next move out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import rfc3339
from kubevnfm_sol.lcm import TERMINAL, InstantiationState, OperationState

from kubevnfm_lcm_api.automation.domain.action import (
    REPAIR_KEY,
    Action,
    ActionState,
    Direction,
    LeftOut,
    Waiting,
    WaitsFor,
    moment,
)
from kubevnfm_lcm_api.automation.domain.trigger import REPEATED, TriggerKind
from kubevnfm_lcm_api.automation.settings import AutomationSettings
from kubevnfm_lcm_api.lifecycle.core.drift import lost_workloads
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.scale_levels import scale_status_of
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_by_vnfc

HOUR: Final = timedelta(hours=1)
_LOOK: Final = timedelta(seconds=30)
"""The longest time to the next look at an action that waits for an event."""
_SOON: Final = timedelta(seconds=1)
_PAUSES: Final = BackOff(first_s=1.0, longest_s=60.0)
_REPEATED_S: Final = 60.0
"""Without a cool-down: so long two senders of the same fact, or one that repeats its message after an error, count once."""
_FLAGS: Final = {"HEAL": "isAutohealEnabled", "SCALE": "isAutoscaleEnabled"}


@dataclass(frozen=True)
class Obstacle:
    """Why an operation cannot begin now."""

    what: WaitsFor
    text: str
    until: datetime | None = None
    """None: it is not known."""
    operation_id: str | None = None


@dataclass(frozen=True)
class Situation:
    """All that is known about an action at one moment."""

    action: Action
    record: InstanceRecord | None
    """None: the VNF instance was deleted."""
    now: datetime
    rules: AutomationSettings
    running: Obstacle | None = None
    """The operation that has claimed the instance."""
    occurrence: OccurrenceRecord | None = None
    """The operation of the action, if it has begun."""
    earlier: Sequence[Action] = ()
    """Other actions of the instance that were decided in the time that counts."""
    superseded_by: str | None = None
    """The id of a later action that asks for the opposite."""
    named: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By the id of a trigger that names no VNFC: those that it is about now."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """By the id of a trigger: why it does not count any more."""
    max_level: int = 0
    """The highest level of the aspect."""


@dataclass(frozen=True)
class Move:
    """The next form of an action."""

    action: Action
    begins: bool = False
    """Whether its operation is to be begun, before anything else is written."""


def is_enabled(record: InstanceRecord, operation: str) -> bool:
    """Return whether a VNF instance allows to be healed or scaled automatically."""
    # A VNFD, and with it an instance, may give the truth value as text.
    return str(record.vnf.vnf_configurable_properties.get(_FLAGS[operation], "")).lower() == "true"


def flag_of(operation: str) -> str:
    """Return the attribute with which a VNF instance allows it."""
    return f"vnfConfigurableProperties/{_FLAGS[operation]}"


def cool_down_s(rules: AutomationSettings, operation: str) -> float:
    """Return the seconds from the end of an automatic operation to the begin of the next one."""
    return rules.automatic_heal_cooldown_s if operation == "HEAL" else rules.automatic_scale_cooldown_s


def counts_again(rules: AutomationSettings, earlier: Action, kind: TriggerKind, now: datetime) -> bool:
    """Return whether a trigger that an action has already is a new one: its fact lasts longer than the action and its cool-down."""
    if earlier.ended_at is None or kind not in REPEATED:
        return False
    pause_s = max(cool_down_s(rules, earlier.operation), _REPEATED_S)
    return now >= moment(earlier.ended_at) + timedelta(seconds=pause_s)


def next_move(at: Situation) -> Move:
    """Return what becomes of an action that has not ended."""
    action = at.action
    # Also after a crash between the begin of the operation and its note here.
    if at.occurrence is not None:
        return Move(_followed(at, at.occurrence))
    if at.record is None:
        return _ended(at, "NOT_DONE", "the VNF instance was deleted")
    if action.state == "STARTED" or at.record.internals.current_operation == action.occurrence_id:
        # Between the claim of the instance and the insertion of the occurrence.
        return Move(_due(begun(action, at.now), at.now + _SOON))
    if (refusal := _refusal(at, at.record)) is not None:
        return _ended(at, "NOT_DONE", refusal)
    if at.now < moment(action.internal.collects_until):
        return Move(_due(action, moment(action.internal.collects_until)))
    if action.operation == "HEAL":
        # Also once it is decided: another operation may have replaced them since.
        action = _with_vnfcs(at, at.record)
        if not action.vnfc_ids and not _is_repair_needed(at, at.record):
            left = "no object is missing any more" if action.internal.key == REPAIR_KEY else "no VNFC is left"
            why = "; ".join(dict.fromkeys(each.reason for each in action.left_out)) or left
            return _ended(_of(at, action), "NOT_DONE", f"nothing to heal: {why}")
    if (obstacle := at.running or _held_back(at)) is not None:
        return Move(waiting(_of(at, at.action), obstacle))
    if action.operation == "SCALE" and (limit := _limit(at, at.record)) is not None:
        return _ended(at, "NOT_DONE", f"not done: {limit}")
    if at.rules.automatic_mode == "trial":
        text = f"trial: would begin {action.subject}, because {action.text}"
        return _ended(_of(at, action.with_internal(decided_at=rfc3339(at.now))), "TRIAL", text)
    if action.internal.decided_at is None or action != at.action:
        # Stored before its operation begins with it.
        return Move(_due(action.with_internal(decided_at=action.internal.decided_at or rfc3339(at.now)), at.now))
    return Move(action, begins=True)


def begun(action: Action, now: datetime) -> Action:
    """Return an action whose operation has begun."""
    changes = {"waiting": None, "operation_id": action.occurrence_id, "operation_state": "STARTING"}
    return _due(action.entered("STARTED", rfc3339(now), **changes), now + _LOOK)


def waiting(at: Situation, obstacle: Obstacle) -> Action:
    """Return an action that waits for the end of an obstacle, or has given up."""
    action, now = at.action, rfc3339(at.now)
    before = action.waiting
    is_same = before is not None and (before.what, before.operation_id) == (obstacle.what, obstacle.operation_id)
    gives_up = moment(action.internal.collects_until) + timedelta(seconds=at.rules.automatic_wait_s)
    if at.now >= gives_up:
        text = f"gave up after {at.rules.automatic_wait_s:g} s: {obstacle.text}"
        return _ended(at, "NOT_DONE", text).action
    wait = Waiting(
        what=obstacle.what,
        text=obstacle.text,
        since=before.since if is_same and before is not None else now,
        operation_id=obstacle.operation_id,
    )
    due = min(gives_up, obstacle.until or at.now + _LOOK)
    return _due(action.entered("WAITING", now, waiting=wait), max(due, at.now + _SOON))


def tried(action: Action, now: datetime) -> tuple[Action, datetime]:
    """Return an action whose operation could not begin for a reason that may end, and when to try again."""
    tries = action.internal.tries + 1
    return action.with_internal(tries=tries), now + timedelta(seconds=_PAUSES.after(tries))


def not_done(at: Situation, reason: str) -> Action:
    """Return an action that is not done."""
    return _ended(at, "NOT_DONE", reason).action


def _of(at: Situation, action: Action) -> Situation:
    return Situation(action, at.record, at.now, at.rules)


def _refusal(at: Situation, record: InstanceRecord) -> str | None:
    """Return why nothing is done, whatever else is known."""
    operation = at.action.operation
    if at.rules.automatic_mode == "off":
        return "automatic operations are switched off (automatic_mode)"
    if record.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        return f"the VNF instance is {record.vnf.instantiation_state}"
    if not is_enabled(record, operation):
        return f"{flag_of(operation)} is not true any more"
    if at.superseded_by is not None:
        return f"the opposite was asked for later, by action {at.superseded_by}"
    return None


def _is_repair_needed(at: Situation, record: InstanceRecord) -> bool:
    is_asked = any(each.id not in at.gone for each in at.action.triggers)
    return at.action.internal.key == REPAIR_KEY and is_asked and bool(lost_workloads(record))


def _with_vnfcs(at: Situation, record: InstanceRecord) -> Action:
    """Return a heal with the VNFCs that it includes now, and those that it leaves out."""
    if at.action.internal.key == REPAIR_KEY:
        gone = [LeftOut(vnfc_id="", reason=at.gone[each.id]) for each in at.action.triggers if each.id in at.gone]
        return at.action.model_copy(update={"left_out": tuple(gone)})
    info = record.vnf.instantiated_vnf_info
    known = resource_by_vnfc(info) if info is not None else {}
    found: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for trigger in at.action.triggers:
        vnfc_ids = trigger.vnfc_ids or tuple(at.named.get(trigger.id, ()))
        why = at.gone.get(trigger.id)
        if why is None and not vnfc_ids:
            left_out[""] = "no VNFC has a problem any more"
        for vnfc_id in vnfc_ids:
            if why is not None:
                left_out[vnfc_id] = why
            elif vnfc_id not in known:
                left_out[vnfc_id] = f"VNFC {vnfc_id} is not a part of the VNF any more"
            else:
                found.setdefault(known[vnfc_id], vnfc_id)
        if why is not None and not vnfc_ids:
            left_out[""] = why
    healed = tuple(found.values())
    left = tuple(LeftOut(vnfc_id=key, reason=why) for key, why in left_out.items() if key not in healed)
    return at.action.model_copy(update={"vnfc_ids": healed, "left_out": left})


def _held_back(at: Situation) -> Obstacle | None:
    """Return the cool-down or the budget that an action waits for."""
    mine = at.action.internal.decided_at
    is_trial = at.rules.automatic_mode == "trial"
    before = [
        each
        for each in at.earlier
        if each.id != at.action.id
        and each.internal.decided_at is not None
        and (is_trial or each.state != "TRIAL")
        # If two were decided at a time, the first one counts for the other.
        and (mine is None or (each.internal.decided_at, each.id) < (mine, at.action.id))
    ]
    pause_s = cool_down_s(at.rules, at.action.operation)
    ends = [
        (moment(each.ended_at or each.internal.decided_at or each.created_at) + timedelta(seconds=pause_s), each)
        for each in before
        if each.operation == at.action.operation
    ]
    until, last = max(ends, key=lambda each: each[0], default=(None, None))
    if until is not None and last is not None and until > at.now:
        text = f"a cool-down of {pause_s:g} s after action {last.id}, until {rfc3339(until)}"
        return Obstacle("COOL_DOWN", text, until)
    most = at.rules.automatic_operations_per_hour
    times = sorted(moment(each.internal.decided_at or each.created_at) for each in before)
    counted = [each for each in times if each > at.now - HOUR]
    if most and len(counted) >= most:
        until = counted[len(counted) - most] + HOUR
        text = f"the most automatic operations of an hour were reached ({most}), until {rfc3339(until)}"
        return Obstacle("BUDGET", text, until)
    return None


def _limit(at: Situation, record: InstanceRecord) -> str | None:
    """Return the limit of the aspect that the VNF has reached; None if it can be scaled."""
    action = at.action
    return limit_of(record, str(action.aspect_id), action.direction, at.max_level)


def limit_of(record: InstanceRecord, aspect_id: str, direction: Direction | None, max_level: int) -> str | None:
    """Return the limit of an aspect that a VNF has reached; None if it can be scaled by a step."""
    level = {each.aspect_id: each.scale_level for each in scale_status_of(record)}.get(aspect_id, 0)
    if direction == "SCALE_OUT" and level >= max_level:
        return f"aspect {aspect_id} is at its maximum (level {level})"
    if direction == "SCALE_IN" and level <= 0:
        return f"aspect {aspect_id} is at its minimum (level 0)"
    return None


def _followed(at: Situation, occurrence: OccurrenceRecord) -> Action:
    """Return the action as its operation is."""
    occ, action = occurrence.occ, at.action
    if action.state != "STARTED":
        action = begun(action, at.now)
    action = action.model_copy(update={"operation_state": occ.operation_state.value})
    if occ.operation_state not in TERMINAL:
        return _due(action, at.now + _LOOK)
    if occ.operation_state is OperationState.COMPLETED:
        return _ended(_of(at, action), "DONE", None, occ.state_entered_time).action
    why = f": {occ.error.detail}" if occ.error is not None else ""
    text = f"{occ.operation} {occ.id} ended {occ.operation_state}{why}"
    return _ended(_of(at, action), "NOT_DONE", text, occ.state_entered_time).action


def _due(action: Action, at: datetime) -> Action:
    return action.with_internal(due_at=rfc3339(at))


def _ended(at: Situation, state: ActionState, reason: str | None, ended_at: str | None = None) -> Move:
    action, now = at.action, rfc3339(at.now)
    decided_at = action.internal.decided_at
    # An operation that never began counts for no budget.
    if action.operation_id is None and state != "TRIAL":
        decided_at = None
    ended = action.entered(state, now, reason=reason, waiting=None, ended_at=ended_at or now)
    return Move(ended.with_internal(due_at=None, decided_at=decided_at))
