"""An alert of a monitoring system about a VNF instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kubevnfm_sol.faults import EventType, PerceivedSeverity


@dataclass(frozen=True)
class ExternalAlert:
    """The report of a monitoring system: a fault has begun, lasts or has ended."""

    fingerprint: str
    """The same for each message about the same fault."""
    is_firing: bool
    """Whether the fault lasts; False: it has ended."""
    instance_id: str
    severity: PerceivedSeverity
    event_type: EventType
    fault_type: str
    cause: str
    details: tuple[str, ...]
    """Sentences for a person."""
    starts_at: datetime
    ends_at: datetime | None = None
    concerns: Callable[[str], bool] | None = None
    """Whether it is about the compute resource with this ``resourceId``; None: it names none."""
