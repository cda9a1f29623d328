"""The notifications of PM jobs and thresholds (SOL003 V3.7.1 clauses 6.5.2.4 and 6.5.2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_events import Message
from kubevnfm_events.performance import PerformanceReported, ThresholdCrossed
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.notifications.domain.subscription import Announcement, ToAnnouncement

_AVAILABLE: Final = "PerformanceInformationAvailableNotification"
_CROSSED: Final = "ThresholdCrossedNotification"


def key_of(owner_id: str) -> str:
    """Return the key by which the callback of a PM job or threshold is found: no other one has it."""
    return f"pm:{owner_id}"


def _instance(instance_id: str) -> Mapping[str, str]:
    return {"objectInstance": f"/vnflcm/v2/vnf_instances/{instance_id}"}


def _reported(event: PerformanceReported) -> Announcement:
    job = f"/pm_jobs/{event.pm_job_id}"
    attributes: JsonObject = {
        "pmJobId": event.pm_job_id,
        "objectType": event.object_type,
        "objectInstanceId": event.vnf_instance_id,
        **({"subObjectInstanceIds": list(event.sub_object_instance_ids)} if event.sub_object_instance_ids else {}),
    }
    return Announcement(
        _AVAILABLE,
        {"types": [key_of(event.pm_job_id)]},
        lambda _: attributes,
        {"pmJob": job, "performanceReport": f"{job}/reports/{event.report_id}"},
        follows=event.follows,
        follows_at=event.follows_at,
        root_links=_instance(event.vnf_instance_id),
    )


def _crossed(event: ThresholdCrossed) -> Announcement:
    sub = event.sub_object_instance_id
    attributes: JsonObject = {
        "thresholdId": event.threshold_id,
        "crossingDirection": event.direction,
        "objectType": event.object_type,
        "objectInstanceId": event.vnf_instance_id,
        **({"subObjectInstanceId": sub} if sub else {}),
        "performanceMetric": event.metric,
        "performanceValue": event.value,
    }
    return Announcement(
        _CROSSED,
        {"types": [key_of(event.threshold_id)]},
        lambda _: attributes,
        {"threshold": f"/thresholds/{event.threshold_id}"},
        follows=event.follows,
        follows_at=event.follows_at,
        root_links=_instance(event.vnf_instance_id),
    )


PERFORMANCE_ANNOUNCEMENTS: Final[Mapping[type[Message], ToAnnouncement]] = {
    PerformanceReported: _reported,
    ThresholdCrossed: _crossed,
}
