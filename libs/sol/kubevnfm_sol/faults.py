"""Alarms and their requests (SOL003 V3.7.1 clauses 7.5.2.4, 7.5.2.8 and 7.5.4)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_sol.base import SolPatch, SolType
from kubevnfm_sol.resources import ResourceHandle

AckState = Literal["UNACKNOWLEDGED", "ACKNOWLEDGED"]
PerceivedSeverity = Literal["CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE", "CLEARED"]
EventType = Literal[
    "COMMUNICATIONS_ALARM", "PROCESSING_ERROR_ALARM", "ENVIRONMENTAL_ALARM", "QOS_ALARM", "EQUIPMENT_ALARM"
]  # fmt: skip
FaultyResourceType = Literal["COMPUTE", "STORAGE", "NETWORK"]


class FaultyResourceInfo(SolType):
    """Clause 7.5.3.2."""

    faulty_resource: ResourceHandle
    faulty_resource_type: FaultyResourceType


class Alarm(SolType):
    """Clause 7.5.2.4, without ``_links``, which depend on the caller."""

    id: str
    managed_object_id: str
    """The VNF instance; ours: of an alarm about something else, the id of that."""
    vnfc_instance_ids: tuple[str, ...] | None = None
    """The affected VNFCs (vnfcInfo), if a monitoring system has named them; an attribute of SOL002 and of Tacker."""
    root_cause_faulty_resource: FaultyResourceInfo | None = None
    alarm_raised_time: str
    alarm_changed_time: str | None = None
    alarm_cleared_time: str | None = None
    alarm_acknowledged_time: str | None = None
    ack_state: AckState
    perceived_severity: PerceivedSeverity
    event_time: str
    event_type: EventType
    fault_type: str | None = None
    probable_cause: str
    is_root_cause: bool
    correlated_alarm_ids: tuple[str, ...] | None = None
    fault_details: tuple[str, ...] | None = None


class AlarmModifications(SolPatch):
    """Clause 7.5.2.8."""

    ack_state: AckState
