"""PM jobs, their reports, and thresholds (SOL003 V3.7.1 clauses 6.5.2 and 6.5.3)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from kubevnfm_kit.json_types import JsonObject
from pydantic import Field, field_validator

from kubevnfm_sol.base import NUMBER, WHOLE, SolRequest, SolType

ObjectType = Literal["Vnf", "Vnfc", "VnfIntCp", "VnfExtCp"]
"""The measured object types of ETSI GS NFV-IFA 027 clause 6.2 that are known here."""
CrossingDirection = Literal["UP", "DOWN"]
LONGEST_PERIOD_S: Final = 604_800
"""A week."""
MOST_METRICS: Final = 50
MOST_OBJECTS: Final = 100
Period = Annotated[int, Field(ge=1, le=LONGEST_PERIOD_S), WHOLE]
_Name = Annotated[str, Field(min_length=1, max_length=255)]


class PmJobCriteria(SolRequest):
    """Clause 6.5.3.3."""

    performance_metric: tuple[_Name, ...] = Field(default=(), max_length=MOST_METRICS)
    performance_metric_group: tuple[_Name, ...] = Field(default=(), max_length=MOST_METRICS)
    collection_period: Period
    reporting_period: Period
    reporting_boundary: str | None = None

    @field_validator("reporting_boundary")
    @classmethod
    def _is_moment(cls, given: str | None) -> str | None:
        try:
            has_zone = given is None or datetime.fromisoformat(given).tzinfo is not None
        except ValueError:
            has_zone = False
        if not has_zone:
            raise ValueError("a date and time with its offset expected (RFC 3339)")
        return given


class SimpleThresholdDetails(SolRequest):
    """A part of ThresholdCriteria."""

    threshold_value: Annotated[float, Field(allow_inf_nan=False), NUMBER]
    hysteresis: Annotated[float, Field(ge=0, allow_inf_nan=False), NUMBER]


class ThresholdCriteria(SolRequest):
    """Clause 6.5.3.4."""

    performance_metric: _Name
    threshold_type: Literal["SIMPLE"]
    simple_threshold_details: SimpleThresholdDetails


class ReportInfo(SolType):
    """A report of a PM job (in clause 6.5.2.7)."""

    href: str
    ready_time: str
    expiry_time: str | None = None
    file_size: int | None = None


class PmJob(SolType):
    """Clause 6.5.2.7, without ``_links``, which depend on the caller."""

    id: str
    object_type: ObjectType
    object_instance_ids: tuple[str, ...]
    sub_object_instance_ids: tuple[str, ...] | None = None
    criteria: PmJobCriteria
    callback_uri: str
    reports: tuple[ReportInfo, ...] | None = None
    metadata: JsonObject | None = None
    """Ours: as Tacker has it in requests."""


class Threshold(SolType):
    """Clause 6.5.2.9, without ``_links``."""

    id: str
    object_type: ObjectType
    object_instance_id: str
    sub_object_instance_ids: tuple[str, ...] | None = None
    criteria: ThresholdCriteria
    callback_uri: str
    metadata: JsonObject | None = None
    """Ours: as Tacker has it in requests."""


class PerformanceValue(SolType):
    """A part of PerformanceReport."""

    time_stamp: str
    value: float


class ReportEntry(SolType):
    """A part of PerformanceReport: a metric of an object."""

    object_type: ObjectType
    object_instance_id: str
    sub_object_instance_id: str | None = None
    performance_metric: str
    performance_values: tuple[PerformanceValue, ...]


class PerformanceReport(SolType):
    """Clause 6.5.2.10."""

    entries: tuple[ReportEntry, ...]
    metadata: JsonObject | None = None
    """Ours: ``gaps``, the times without values, each with its reason."""


class CallbackModifications(SolType):
    """PmJobModifications and ThresholdModifications (clauses 6.5.2.12 and 6.5.2.11) in answers, which show no authentication."""

    callback_uri: str
