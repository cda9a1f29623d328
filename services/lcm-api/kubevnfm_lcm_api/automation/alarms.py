"""Has VNFCs healed because of alarms of kubevnfm itself, if they last: a machine that is lost, a workload that does not work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events.faults import AlarmChanged
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.automation.decisions import AutomaticOperations
from kubevnfm_lcm_api.automation.domain.ports import OpenAlarms
from kubevnfm_lcm_api.automation.domain.trigger import Trigger

log = structlog.get_logger()

_MACHINE: Final = "machine-lost"
_HEALED: Final = frozenset({_MACHINE, "workload-troubled"})
_AGAIN_S: Final = 2.0


class AlarmHeals:
    """Follows the events about alarms."""

    def __init__(self, automatic: AutomaticOperations, alarms: OpenAlarms) -> None:
        self._automatic, self._alarms = automatic, alarms

    async def follow(self, delivery: Delivery) -> Verdict:
        """Store that the VNFC of an alarm is to be healed; whether the alarm lasts is asked when the heal is due."""
        event = delivery.envelope.data
        if not isinstance(event, AlarmChanged) or event.change != "RAISED" or not event.is_of_vnf:
            return Ack()
        if event.alarm.get("faultType") not in _HEALED:
            return Ack()
        try:
            await self._ask(event)
        except VnfmError as error:
            if error.retryable:
                return Again(_AGAIN_S)
            # The usual case: the VNF instance does not allow it.
            log.debug("alarm_heals_nothing", alarm_id=event.alarm_id, reason=str(error))
        return Ack()

    async def _ask(self, event: AlarmChanged) -> None:
        if not await self._alarms.is_own(event.alarm_id):
            return
        details = event.alarm.get("faultDetails")
        text = str(details[0]) if isinstance(details, list | tuple) and details else f"alarm {event.alarm_id}"
        resource_id = _resource_id(event.alarm) if event.alarm["faultType"] == _MACHINE else None
        trigger = Trigger("alarm", event.alarm_id, text)
        await self._automatic.heal_after_alarm(event.managed_object_id, resource_id, trigger)


def _resource_id(alarm: JsonMapping) -> str | None:
    found: object = alarm
    for name in ("rootCauseFaultyResource", "faultyResource", "resourceId"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None
