"""Brings automatic actions to their end. Everything that is needed for that is stored, so any process continues after a crash.

A move is made from the stored state alone, and a process that makes it a second time finds it made: the operation has an id
that is derived from its action, and a write names the revision that it expects. The process that has stored an action examines
it when it is due; the others take it a little later, so that usually one process works on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events.lcm import AutomaticReason, InstanceDeleted, OperationChanged
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_kit.outages import unless_said
from kubevnfm_kit.run import look_when_due
from kubevnfm_sol.lcm import HealVnfRequest, ScaleVnfRequest
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable

from kubevnfm_lcm_api.automation.domain.action import PENDING, REPAIR_KEY, Action, moment, opposite_of
from kubevnfm_lcm_api.automation.domain.ports import OpenAlarms, TroubledVnfcs
from kubevnfm_lcm_api.automation.domain.rules import (
    HOUR,
    Move,
    Obstacle,
    Situation,
    begun,
    next_move,
    not_done,
    tried,
    waiting,
)
from kubevnfm_lcm_api.automation.settings import AutomationSettings
from kubevnfm_lcm_api.automation.stored_actions import StoredActions
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.claim_errors import InstanceChanged, OperationRunning
from kubevnfm_lcm_api.lifecycle.core.drift import drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.request_parameters import REPAIR
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_by_vnfc
from kubevnfm_lcm_api.lifecycle.requests import changes, scale
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

log = structlog.get_logger()

_LOOK_S: Final = 5.0
"""So often actions are looked for that another process has left, or that are due without a sign."""
_RETRY_S: Final = 1.0
_LEFT: Final = timedelta(seconds=2)
"""So long an action is left to the process that has stored it."""
_AT_ONCE: Final = 8
_MOST_MOVES: Final = 8
"""The most moves of one action in a row, and repetitions because of other writers."""
_AGAIN_S: Final = 2.0
_NEWS: Final = frozenset({"COMPLETED", "FAILED", "ROLLED_BACK", "FAILED_TEMP"})
_BY: Final = "kubevnfm"


class ActionWork:
    """The work on automatic actions."""

    def __init__(
        self,
        *,
        on: RequestServices,
        actions: StoredActions,
        store: DocumentStore,
        alarms: OpenAlarms,
        troubled: TroubledVnfcs,
        rules: AutomationSettings,
        clock: Clock,
        is_alone: bool = False,
    ) -> None:
        """``is_alone``: no other process uses the database."""
        self._on, self._actions, self._store, self._rules, self._clock = on, actions, store, rules, clock
        self._alarms, self._troubled = alarms, troubled
        self._left = timedelta() if is_alone else _LEFT
        self._own: dict[str, datetime] = {}
        """The actions that this process has written last, and when they are due."""
        self._are_open = False
        """Whether any action has not ended, as far as this process knows: another one may have stored one in the last seconds."""
        self._woken = asyncio.Event()
        self._looking = asyncio.Lock()

    def look_at(self, action: Action) -> None:
        """Examine an action when it is due, in this process."""
        due = action.internal.due_at
        if due is None:
            self._own.pop(action.id, None)
            return
        self._own[action.id] = moment(due)
        self._are_open = True
        self._woken.set()

    async def follow(self, delivery: Delivery) -> Verdict:
        """Examine the actions of an instance whose operation has ended, or that was deleted."""
        event = delivery.envelope.data
        is_news = isinstance(event, InstanceDeleted) or (isinstance(event, OperationChanged) and event.state in _NEWS)
        # Most operations end while there is no action: they cost no search.
        if not is_news or not self._are_open:
            return Ack()
        assert isinstance(event, InstanceDeleted | OperationChanged)
        try:
            for action_id in await self._actions.open_of(event.vnf_instance_id):
                self._own[action_id] = self._clock.now()
                self._woken.set()
        except StoreUnavailable:
            return Again(_AGAIN_S)
        return Ack()

    async def run(self) -> None:
        """Work until cancelled."""

        async def look() -> float:
            try:
                return await self.look()
            except StoreUnavailable as error:
                unless_said(error).warning("automatic_actions_not_read", reason=str(error))
                return _RETRY_S

        await look_when_due(look, self._woken)

    async def look(self) -> float:
        """Examine all actions that are due; return the seconds until the next one may be. Raises StoreUnavailable."""
        async with self._looking:
            return await self._look()

    async def _look(self) -> float:
        now = self._clock.now()
        mine = [each for each, due in self._own.items() if due <= now]
        found = await self._actions.open_by_time()
        self._are_open = bool(found)
        left = [each for each, due in found if moment(due) <= now - self._left]
        all_due = list(dict.fromkeys([*mine, *left]))
        for start in range(0, len(all_due), _AT_ONCE):
            some = all_due[start : start + _AT_ONCE]
            results = await asyncio.gather(*map(self._examine, some), return_exceptions=True)
            for error in filter(None, results):
                raise error
        now = self._clock.now()
        return min([_LOOK_S, *(max((due - now).total_seconds(), 0.0) for due in self._own.values())])

    async def _examine(self, action_id: str) -> None:
        """Make all moves of an action that can be made now. Raises StoreUnavailable."""
        self._own.pop(action_id, None)
        for _ in range(_MOST_MOVES):
            try:
                stored, action = await self._actions.get(action_id)
            except NotFound:
                return
            if action.internal.due_at is None:
                return
            try:
                move = await self._next(action)
                if move.action != action:
                    await self._actions.write(stored, move.action)
            except RevisionConflict:
                continue
            except StoreUnavailable:
                self._own[action_id] = self._clock.now() + timedelta(seconds=_RETRY_S)
                raise
            except Exception:  # a fault of ours with one action must not stop the others, and must be seen
                log.exception("automatic_action_failed", action_id=action_id)
                self._own[action_id] = self._clock.now() + timedelta(minutes=1)
                return
            due = move.action.internal.due_at
            if due is None:
                return
            if moment(due) > self._clock.now():
                self._own[action_id] = moment(due)
                return
        self._own[action_id] = self._clock.now() + timedelta(seconds=_RETRY_S)

    async def _next(self, action: Action) -> Move:
        """Return the next move of an action; its operation is begun before. Raises StoreUnavailable."""
        try:
            at = await self._situation(action)
        except StoreUnavailable:
            raise
        except VnfmError as error:  # another service does not answer
            return Move(self._delayed(Situation(action, None, self._clock.now(), self._rules), error))
        move = next_move(at)
        if not move.begins:
            return move
        return Move(await self._begun(replace(at, action=move.action)))

    async def _situation(self, action: Action) -> Situation:
        now, store = self._clock.now(), self._store
        # The instance first: an operation that has released it has its occurrence stored.
        stored = await store.get(instances.COLLECTION, action.vnf_instance_id)
        record = None if stored is None else InstanceRecord.from_document(stored.body)
        begun_as = None
        if action.internal.decided_at is not None:
            found = await store.get(occurrences.COLLECTION, action.occurrence_id)
            begun_as = None if found is None else OccurrenceRecord.from_document(found.body)
        at = Situation(action, record, now, self._rules, occurrence=begun_as)
        if begun_as is not None or record is None or now < moment(action.internal.collects_until):
            return at
        named, gone = await self._triggers(action)
        longest_s = max(self._rules.automatic_heal_cooldown_s, self._rules.automatic_scale_cooldown_s)
        # From the begin of an operation, and a cool-down counts from its end: so older ones are read, too.
        since = now - max(HOUR, timedelta(seconds=longest_s)) - timedelta(days=1)
        return replace(
            at,
            running=await self._running(record, action),
            earlier=await self._actions.decided_since(action.vnf_instance_id, since),
            superseded_by=await self._superseded_by(action),
            named=named,
            gone=gone,
            max_level=await self._max_level(record, action),
        )

    async def _running(self, record: InstanceRecord, action: Action) -> Obstacle | None:
        try:
            await self._on.engine.check_free(record, record.vnf.instantiation_state)
        except OperationRunning as error:
            return None if error.occurrence_id == action.occurrence_id else _obstacle(error)
        return None

    async def _superseded_by(self, action: Action) -> str | None:
        key = opposite_of(action)
        newest = None if key is None else await self._actions.newest(action.vnf_instance_id, key)
        if newest is None or newest[1].state not in PENDING:
            return None
        other = newest[1]
        is_later = (other.created_at, other.id) > (action.created_at, action.id)
        return other.id if is_later and action.internal.decided_at is None else None

    async def _max_level(self, record: InstanceRecord, action: Action) -> int:
        info = record.vnf.instantiated_vnf_info
        if action.aspect_id is None or info is None:
            return 0
        _, vnfd = await self._on.package_of(record)
        aspect = vnfd.flavour(info.flavour_id).aspects.get(action.aspect_id)
        return 0 if aspect is None else aspect.max_scale_level

    async def _triggers(self, action: Action) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
        """Return the VNFCs of triggers that name none, and why triggers do not count any more."""
        named: dict[str, tuple[str, ...]] = {}
        gone: dict[str, str] = {}
        if action.operation != "HEAL":
            return named, gone
        for trigger in action.triggers:
            if trigger.kind == "alarm" and (why := await self._alarms.why_not(trigger.id)) is not None:
                gone[trigger.id] = why
            elif not trigger.vnfc_ids and action.internal.key != REPAIR_KEY:
                named[trigger.id] = tuple(await self._troubled.in_trouble(action.vnf_instance_id))
        return named, gone

    async def _begun(self, at: Situation) -> Action:
        """Begin the operation of an action that is decided. Raises StoreUnavailable."""
        action = at.action
        assert at.record is not None
        try:
            await self._accept(action, at.record)
        except StoreUnavailable:
            raise
        except OperationRunning as error:
            if error.occurrence_id != action.occurrence_id:
                return waiting(at, _obstacle(error))
        except VnfmError as error:
            if error.retryable or isinstance(error, InstanceChanged):
                return self._delayed(at, error)
            # Perhaps the operation itself has changed that: another process has begun it, and it has ended.
            if await self._store.get(occurrences.COLLECTION, action.occurrence_id) is None:
                return not_done(at, str(error))
        return begun(action, self._clock.now())

    async def _accept(self, action: Action, record: InstanceRecord) -> None:
        """Accept the operation, unless that was done before. Raises what refuses it."""
        on, instance_id = self._on, action.vnf_instance_id
        version = record.internals.api_version
        reason = AutomaticReason(
            trigger=action.triggers[0].kind, trigger_id=action.triggers[0].id, reason=action.text, action_id=action.id
        )
        origin = Origin(_BY, occurrence_id=action.occurrence_id, automatic=reason)
        if action.operation == "HEAL":
            body: dict[str, object] = {"vnfcInstanceId": list(action.vnfc_ids)}
            if _has_lost_workload(action, record):
                # Its VNFCs have nothing that could be replaced: the objects of the VNF that are missing are applied again.
                body = {"additionalParams": {REPAIR: True}}
            heal = Asked(HealVnfRequest.model_validate(body), body, version, origin=origin)
            checked = await changes.checked_heal(on, instance_id, heal)
        else:
            body = {"type": action.direction, "aspectId": action.aspect_id, "numberOfSteps": 1}
            wanted = Asked(ScaleVnfRequest.model_validate(body), body, version, origin=origin)
            checked = await scale.checked(on, instance_id, wanted)
        # After the instance was read for the check: if the operation has ended meanwhile, it is stored; if it begins later, the
        # revision of the instance does not hold any more.
        if await self._store.get(occurrences.COLLECTION, action.occurrence_id) is None:
            await on.acceptance.accept(checked)

    def _delayed(self, at: Situation, error: VnfmError) -> Action:
        action, until = tried(at.action, self._clock.now())
        return waiting(replace(at, action=action), Obstacle("OTHER", str(error), until))


def _has_lost_workload(action: Action, record: InstanceRecord) -> bool:
    """Return whether a workload of containers was found deleted that a heal, or a VNFC of it, is about."""
    if action.internal.key == REPAIR_KEY:
        return True
    drift, info = drift_of(record.vnf.metadata), record.vnf.instantiated_vnf_info
    if drift is None or info is None or record.release is None or record.internals.workload is not None:
        return False
    resources = resource_by_vnfc(info)
    return not {resources.get(each) for each in action.vnfc_ids}.isdisjoint(drift.vnfc_ids)


def _obstacle(error: OperationRunning) -> Obstacle:
    return Obstacle("OPERATION", str(error), operation_id=error.occurrence_id)
