"""The settings of alarms; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from pydantic import BaseModel, Field


class FaultSettings(BaseModel):
    """How alarms are found and kept."""

    faults_every_s: float = Field(default=60.0, gt=0)
    """Seconds between two rounds that compare all alarms with the state of VNF instances, VIMs and subscriptions. Most alarms
    are raised and cleared at once, by events; a round finds what no event reports, for example access data that end soon."""
    cleared_alarms_days: float = Field(default=30.0, gt=0)
    """Days after which an alarm that was cleared is removed from the list."""
    external_alarm_lost_after_s: float = Field(default=0.0, ge=0)
    """Seconds after which an alarm of a monitoring system that has not repeated it is cleared; 0: it lasts until it is resolved,
    or its VNF instance is deleted. More than the ``repeat_interval`` of Alertmanager."""
