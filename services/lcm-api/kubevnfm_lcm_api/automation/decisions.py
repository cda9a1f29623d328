"""Stores what asks for automatic operations: once for each trigger, and before the caller gets its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import Conflict, InvalidInput
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_store.port import AlreadyExists, RevisionConflict

from kubevnfm_lcm_api.automation.domain.action import (
    ALARM_KEY,
    HEAL_KEY,
    MOST_TRIGGERS,
    PENDING,
    REPAIR_KEY,
    Action,
    ActionInternals,
    AskedBy,
    Direction,
    action_id,
    fact_of,
    moment,
    scale_key,
)
from kubevnfm_lcm_api.automation.domain.rules import counts_again, flag_of, is_enabled, limit_of
from kubevnfm_lcm_api.automation.domain.trigger import Trigger
from kubevnfm_lcm_api.automation.settings import AutomationSettings
from kubevnfm_lcm_api.automation.stored_actions import StoredActions
from kubevnfm_lcm_api.automation.work import ActionWork
from kubevnfm_lcm_api.lifecycle.core.claim_errors import wrong_state
from kubevnfm_lcm_api.lifecycle.core.drift import lost_workloads
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import HEAL, SCALE
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_by_vnfc, resource_ids
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

_LONGEST_TEXT: Final = 512
_LONGEST_ID: Final = 512
"""A server and an alarm of its notifier have two ids."""
_MOST_EXTENSIONS: Final = 3
"""An alarm that comes later delays the heal of earlier ones, up to so often the time that an alarm must last."""


@dataclass(frozen=True)
class _Wanted:
    """The request of a trigger."""

    record: InstanceRecord
    key: str
    asked: AskedBy
    aspect_id: str | None = None
    direction: Direction | None = None

    @property
    def fact(self) -> str:
        return fact_of(self.record.vnf.id, self.key, self.asked.kind, self.asked.id)


class AutomaticOperations:
    """Takes what asks for automatic operations, and cancels pending ones."""

    def __init__(
        self, *, on: RequestServices, actions: StoredActions, work: ActionWork, rules: AutomationSettings, clock: Clock
    ) -> None:
        self._on, self._actions, self._work, self._rules, self._clock = on, actions, work, rules, clock

    async def heal(self, instance_id: str, vnfc_ids: Sequence[str], trigger: Trigger) -> None:
        """Store that VNFCs are to be healed; ``vnfc_ids``: of vnfcInfo or vnfcResourceInfo.

        A trigger that is known changes nothing, until its action has ended and the cool-down has passed. Raises: NotFound;
        TaskUnsupported; Conflict for an instance that is not INSTANTIATED or does not allow it; InvalidInput for an unknown VNFC.
        """
        record = await self._allowed(instance_id, HEAL)
        info = record.vnf.instantiated_vnf_info
        assert info is not None
        if not vnfc_ids:
            raise InvalidInput("vnfcInstanceId", "at least one VNFC expected")
        wanted = _Wanted(record, HEAL_KEY, self._asked(trigger, tuple(dict.fromkeys(vnfc_ids))))
        try:
            resource_ids(vnfc_ids, info)
        except InvalidInput:
            # The heal that a known trigger has asked for may have replaced the VNFC meanwhile.
            if await self._actions.asked_by(wanted.fact) is not None:
                return
            raise
        await self._store(wanted, after_s=self._rules.automatic_heal_collects_s)

    async def heal_after_alarm(self, instance_id: str, resource_id: str | None, trigger: Trigger) -> None:
        """Store that an alarm of kubevnfm itself asks for a heal, if it lasts.

        ``resource_id``: the machine, pod or workload; None: the pods that have a problem when the heal is due. Raises as `heal`.
        """
        record = await self._allowed(instance_id, HEAL)
        info = record.vnf.instantiated_vnf_info
        resources = resource_by_vnfc(info) if info is not None else {}
        # The last name of a resource is that of vnfcInfo, where it has one.
        vnfc_by_resource = {resource: vnfc for vnfc, resource in resources.items()}
        key, vnfc_ids = ALARM_KEY, tuple[str, ...]()
        if resource_id in {each.uid for each in lost_workloads(record)}:
            key = REPAIR_KEY
        elif resource_id in vnfc_by_resource:
            vnfc_ids = (vnfc_by_resource[resource_id],)
        elif resource_id is not None:
            raise InvalidInput(
                "rootCauseFaultyResource", f"the VNF has no VNFC or workload with the resource {resource_id}"
            )
        wanted = _Wanted(record, key, self._asked(trigger, vnfc_ids))
        await self._store(wanted, after_s=self._rules.automatic_heal_after_s)

    async def scale(self, instance_id: str, aspect_id: str, direction: Direction, trigger: Trigger) -> None:
        """Store that an aspect is to be scaled by one step. Raises as `heal`, with InvalidInput for an unknown aspect."""
        record = await self._allowed(instance_id, SCALE)
        max_level = await self._max_level(record, aspect_id, "aspectId")
        key = scale_key(aspect_id, direction)
        wanted = _Wanted(record, key, self._asked(trigger, ()), aspect_id, direction)
        is_limited = limit_of(record, aspect_id, direction, max_level) is not None
        await self._store(wanted, after_s=0.0, is_limited=is_limited)

    async def check_aspect(self, instance_id: str, aspect_id: str, place: str) -> None:
        """Check that an instance has an aspect, once it is INSTANTIATED. Raises InvalidInput at ``place``; NotFound."""
        _, record = await self._on.read(instance_id)
        await self._max_level(record, aspect_id, place)

    async def _max_level(self, record: InstanceRecord, aspect_id: str, place: str) -> int:
        """Return the highest level of an aspect; 0 before the instance is INSTANTIATED. Raises InvalidInput at ``place``."""
        if (info := record.vnf.instantiated_vnf_info) is None:
            return 0
        _, vnfd = await self._on.package_of(record)
        aspects = vnfd.flavour(info.flavour_id).aspects
        if aspect_id not in aspects:
            known = ", ".join(aspects) or "none"
            raise InvalidInput(place, f"the VNFD has no scaling aspect {aspect_id}; it has {known}")
        return aspects[aspect_id].max_scale_level

    async def get(self, id: str) -> Action:
        """Return an action. Raises NotFound."""
        return (await self._actions.get(id))[1]

    async def cancel(self, id: str, by: str) -> Action:
        """End an action that has not begun. Raises NotFound; Conflict if it has begun or ended."""
        while True:
            stored, action = await self._actions.get(id)
            if action.state not in PENDING or action.internal.decided_at is not None:
                raise Conflict(f"automatic action {id} is {action.state}, and not pending any more")
            now = rfc3339(self._clock.now())
            reason = f"cancelled by {by}" if by else "cancelled"
            ended = action.entered("NOT_DONE", now, reason=reason, waiting=None, ended_at=now).with_internal(
                due_at=None
            )
            try:
                await self._actions.write(stored, ended)
            except RevisionConflict:
                continue
            return ended

    async def _allowed(self, instance_id: str, task: str) -> InstanceRecord:
        """Return an instance that allows the task to be done automatically."""
        _, record = await self._on.read(instance_id)
        if record.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
            raise wrong_state(record, InstantiationState.INSTANTIATED)
        self._on.check_supported(record, task)
        if self._rules.automatic_mode == "off":
            raise Conflict("automatic operations are switched off (automatic_mode)")
        operation = task.upper()
        if not is_enabled(record, operation):
            raise Conflict(f"{flag_of(operation)} of the VNF instance: true expected")
        return record

    def _asked(self, trigger: Trigger, vnfc_ids: tuple[str, ...]) -> AskedBy:
        if not 1 <= len(trigger.id) <= _LONGEST_ID:
            raise InvalidInput("trigger/id", f"1 to {_LONGEST_ID} characters expected")
        return AskedBy(
            kind=trigger.kind,
            id=trigger.id,
            text=bounded(trigger.text, _LONGEST_TEXT),
            at=rfc3339(self._clock.now()),
            vnfc_ids=vnfc_ids,
        )

    async def _store(self, wanted: _Wanted, *, after_s: float, is_limited: bool = False) -> None:
        """Store a trigger in the action that it joins, or in a new one, unless it is known.

        ``is_limited``: nothing could be done now. Once is enough to say so: a trigger may be repeated for weeks.
        """
        instance_id = wanted.record.vnf.id
        while True:
            # In this order: a process that stores the same trigger meanwhile changes the newest action, or adds the next one,
            # and either refuses the write below.
            newest = await self._actions.newest(instance_id, wanted.key)
            earlier = await self._actions.asked_by(wanted.fact)
            if earlier is not None and (
                is_limited or not counts_again(self._rules, earlier, wanted.asked.kind, self._clock.now())
            ):
                return
            try:
                if newest is not None and newest[1].is_joinable:
                    if newest[1].has_all_of(wanted.asked):
                        return
                    action = self._joined(newest[1], wanted, after_s)
                    await self._actions.write(newest[0], action)
                else:
                    number = 1 if newest is None else newest[1].internal.number + 1
                    action = self._new(wanted, number, after_s)
                    await self._actions.insert(action)
            except (AlreadyExists, RevisionConflict):
                continue
            self._work.look_at(action)
            return

    def _new(self, wanted: _Wanted, number: int, after_s: float) -> Action:
        now = self._clock.now()
        instance_id, until = wanted.record.vnf.id, rfc3339(now + timedelta(seconds=after_s))
        return Action(
            id=action_id(instance_id, wanted.key, number),
            vnf_instance_id=instance_id,
            vnf_instance_name=wanted.record.vnf.vnf_instance_name,
            operation="HEAL" if wanted.aspect_id is None else "SCALE",
            aspect_id=wanted.aspect_id,
            direction=wanted.direction,
            state="COLLECTING",
            created_at=rfc3339(now),
            state_since=rfc3339(now),
            triggers=(wanted.asked,),
            internal=ActionInternals(
                key=wanted.key, number=number, facts=(wanted.fact,), collects_until=until, due_at=until
            ),
        )

    def _joined(self, action: Action, wanted: _Wanted, after_s: float) -> Action:
        if len(action.triggers) >= MOST_TRIGGERS:
            raise Conflict(
                f"automatic action {action.id} has {MOST_TRIGGERS} triggers: no further one before it begins"
            )
        internal = action.internal
        joined = action.model_copy(update={"triggers": (*action.triggers, wanted.asked)})
        until = internal.collects_until
        if wanted.key in {ALARM_KEY, REPAIR_KEY}:
            latest = moment(action.created_at) + timedelta(seconds=_MOST_EXTENSIONS * after_s)
            until = max(until, rfc3339(min(self._clock.now() + timedelta(seconds=after_s), latest)))
        return joined.with_internal(facts=(*internal.facts, wanted.fact), collects_until=until)
