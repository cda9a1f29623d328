"""Alarms about VNF instances, and about what they depend on (lcm-api)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_events.base import Event


class AlarmChanged(Event, kind="lcm.alarm.changed", by="lcm-api"):
    """An alarm was raised, has changed, or was cleared."""

    alarm_id: str
    change: Literal["RAISED", "CHANGED", "CLEARED"]
    managed_object_id: str
    """The VNF instance; of an alarm about something else: the id of the VIM, the subscription or the service."""
    alarm: dict[str, object]
    """SOL003's Alarm (clause 7.5.2.4) without its links."""
    is_of_vnf: bool = True
    """Whether the managed object is a VNF instance."""
    vnf_instance_name: str = ""
    vnfd_id: str = ""
    vnf_provider: str = ""
    vnf_product_name: str = ""
    vnf_software_version: str = ""
    vnfd_version: str = ""
    follows: str = ""
    """The id of the event before this one about the same alarm; empty if there is none. A consumer that must keep them in
    order waits for that one."""
    follows_at: datetime | None = None
    """The time at which that event became true."""


class AlarmListRebuilt(Event, kind="lcm.alarms.rebuilt", by="lcm-api"):
    """The stored list of alarms was lost, and was made again from the state of all that is known."""

    alarms: int
    """How many alarms the new list has that are not cleared."""
