"""Subscriptions to alarms, and their notifications.

SOL003 V3.7.1 clauses 7.5.2.2, 7.5.2.3, 7.5.2.5 to 7.5.2.7 and 7.5.3.3; api.md 13.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from kubevnfm_events import Message
from kubevnfm_events.faults import AlarmChanged, AlarmListRebuilt
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.base import SolRequest
from kubevnfm_sol.faults import EventType, FaultyResourceType, PerceivedSeverity

from kubevnfm_lcm_api.notifications.domain.lifecycle import InstanceFilter
from kubevnfm_lcm_api.notifications.domain.subscription import (
    ANY,
    Announcement,
    SubscriptionRequest,
    ToAnnouncement,
    product_keys,
)

_ALARM: Final = "AlarmNotification"
_CLEARED: Final = "AlarmClearedNotification"
_REBUILT: Final = "AlarmListRebuiltNotification"
NotificationType = Literal["AlarmNotification", "AlarmClearedNotification", "AlarmListRebuiltNotification"]


class FmNotificationsFilter(SolRequest):
    """Clause 7.5.3.3."""

    vnf_instance_subscription_filter: InstanceFilter | None = None
    notification_types: tuple[NotificationType, ...] = ()
    faulty_resource_types: tuple[FaultyResourceType, ...] = ()
    perceived_severities: tuple[PerceivedSeverity, ...] = ()
    event_types: tuple[EventType, ...] = ()
    probable_causes: tuple[str, ...] = ()


class FmSubscriptionRequest(SubscriptionRequest):
    """Clause 7.5.2.2."""

    filter: FmNotificationsFilter = FmNotificationsFilter()

    def keys(self) -> dict[str, list[str]]:
        """Types are named even where any fits: ``*`` there is any news of life cycles."""
        wanted = self.filter
        return {
            "types": list(wanted.notification_types or get_args(NotificationType)),
            "resources": list(wanted.faulty_resource_types) or [ANY],
            "severities": list(wanted.perceived_severities) or [ANY],
            "events": list(wanted.event_types) or [ANY],
            "causes": list(wanted.probable_causes) or [ANY],
            **(wanted.vnf_instance_subscription_filter or InstanceFilter()).keys(),
        }


def _changed(event: AlarmChanged) -> Announcement:
    alarm: JsonMapping = event.alarm
    is_cleared = event.change == "CLEARED"
    type_ = _CLEARED if is_cleared else _ALARM
    path, instance = f"/alarms/{event.alarm_id}", f"/vnflcm/v2/vnf_instances/{event.managed_object_id}"
    attributes: JsonObject = {"alarm": dict(alarm)}
    if is_cleared:
        attributes = {"alarmId": event.alarm_id, "alarmClearedTime": alarm["alarmClearedTime"]}
    links = {"self": f"/vnffm/v1{path}", **({"objectInstance": instance} if event.is_of_vnf else {})}
    resource = alarm.get("rootCauseFaultyResource") or {}
    names = (event.vnf_provider, event.vnf_product_name, event.vnf_software_version, event.vnfd_version)
    of_vnf = (f"id:{event.managed_object_id}", f"name:{event.vnf_instance_name}") if event.is_of_vnf else ()
    of_vnfd = (f"vnfd:{event.vnfd_id}", *product_keys(*names)) if event.is_of_vnf else ()
    return Announcement(
        type_,
        {
            "types": [type_],
            "resources": [ANY, *([resource["faultyResourceType"]] if resource else [])],
            # That it is cleared is a severity of its own; the former one says which alarm it was.
            "severities": [ANY, alarm["perceivedSeverity"], *(["CLEARED"] if is_cleared else [])],
            "events": [ANY, alarm["eventType"]],
            "causes": [ANY, alarm["probableCause"]],
            "instances": [ANY, *of_vnf],
            "vnfds": [ANY, *of_vnfd],
        },
        lambda _: attributes,
        {"alarm": path} if is_cleared else {},
        follows=event.follows,
        follows_at=event.follows_at,
        is_last=is_cleared,
        inner_links={} if is_cleared else {"alarm": links},
    )


def _rebuilt(_: AlarmListRebuilt) -> Announcement:
    # Its subscribers read the list again, whichever alarms they want: it is about all of them.
    return Announcement(_REBUILT, {"types": [_REBUILT]}, lambda _: {}, {"alarms": "/alarms"}, is_last=True)


FAULT_ANNOUNCEMENTS: Final[Mapping[type[Message], ToAnnouncement]] = {
    AlarmChanged: _changed,
    AlarmListRebuilt: _rebuilt,
}


def about_vnf(body: JsonMapping) -> str:
    """Return the VNF instance that a notification of an alarm is about; "" if it is about none, or names none."""
    alarm: JsonMapping = body.get("alarm") or {}
    return str(alarm.get("managedObjectId", "")) if "objectInstance" in alarm.get("_links", {}) else ""
