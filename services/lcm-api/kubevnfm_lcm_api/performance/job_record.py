"""A PM job as it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.performance import ObjectType
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.performance.domain.metrics import Wanted, wanted_metrics
from kubevnfm_lcm_api.performance.domain.periods import Periods

COLLECTION: Final = "pm_jobs"
SAMPLES: Final = "pm_samples"
"""The values of one collection period each, or one value that was sent; and what could not be measured."""


@dataclass(frozen=True)
class JobRecord:
    """The parts of a PM job that measuring reads."""

    id: str
    body: JsonMapping
    object_type: ObjectType
    instance_ids: Sequence[str]
    sub_ids: Sequence[str]
    wanted: Sequence[Wanted]
    periods: Periods
    measured: int
    """The number of the last collection period that is measured, or was given up."""

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Read a document."""
        body, internal, criteria = stored.body, stored.body["internal"], stored.body["criteria"]
        ids, boundary = body["objectInstanceIds"], criteria.get("reportingBoundary")
        metrics = criteria.get("performanceMetric", ())
        return cls(
            id=stored.id,
            body=body,
            object_type=body["objectType"],
            instance_ids=ids,
            sub_ids=body.get("subObjectInstanceIds", ()),
            wanted=wanted_metrics(body["objectType"], metrics, criteria.get("performanceMetricGroup", ()), ids),
            periods=Periods(
                datetime.fromisoformat(internal["begin"]),
                criteria["collectionPeriod"],
                criteria["reportingPeriod"],
                None if boundary is None else datetime.fromisoformat(boundary),
            ),
            measured=internal["measured"],
        )

    @property
    def most_values(self) -> int:
        """The most values of one collection period: those of a report are bounded."""
        return max(1, MOST_VALUES // self.periods.in_report)


MOST_VALUES: Final = 50_000
"""Values of one report."""
