"""Reports of PM jobs, and crossings of thresholds (lcm-api)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_events.base import Event


class PerformanceReported(Event, kind="lcm.performance.reported", by="lcm-api"):
    """A report of a PM job is available; one event for each VNF instance that it is about."""

    pm_job_id: str
    report_id: str
    object_type: str
    vnf_instance_id: str
    sub_object_instance_ids: tuple[str, ...] = ()
    """The parts that the job names; empty: it measures all of them."""
    follows: str = ""
    """The id of the event before this one about the same job; empty if there is none. A consumer that must keep them in
    order waits for that one."""
    follows_at: datetime | None = None
    """The time at which that event became true."""


class ThresholdCrossed(Event, kind="lcm.threshold.crossed", by="lcm-api"):
    """The value of a metric has crossed a threshold."""

    threshold_id: str
    direction: Literal["UP", "DOWN"]
    object_type: str
    vnf_instance_id: str
    sub_object_instance_id: str | None = None
    metric: str
    value: float
    measured_at: datetime
    """The time of the value."""
    follows: str = ""
    """The id of the event before this one about the same threshold; empty if there is none. A consumer that must keep them in
    order waits for that one."""
    follows_at: datetime | None = None
    """The time at which that event became true."""
