"""The ports of performance management: the systems that measure, and the one that acts on crossings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.performance import CrossingDirection


class MeasurerUnavailable(OutsideUnavailable, code="prometheus-unavailable", title="Prometheus unavailable"):
    """The Prometheus does not answer, or not as one; later it may."""


class MeasurementRefused(VnfmError, code="measurement-refused", title="Measurement refused"):
    """The Prometheus refuses the query, or answers with more than is expected."""


@dataclass(frozen=True)
class Series:
    """The values of one time series."""

    labels: Mapping[str, str]
    values: Sequence[tuple[float, float]]
    """Each with its time in seconds since 1970; finite."""


class Measurer(Protocol):
    """A Prometheus."""

    async def query_range(self, query: str, *, start: datetime, end: datetime, step_s: int) -> Sequence[Series]:
        """Return the values of an expression at ``start``, and each ``step_s`` up to ``end``.

        Raises MeasurerUnavailable, MeasurementRefused.
        """
        ...


@dataclass(frozen=True)
class Crossing:
    """A threshold was crossed."""

    id: str
    """The same each time that this crossing is reported."""
    threshold_id: str
    direction: CrossingDirection
    metric: str
    value: float
    at: datetime
    object_instance_id: str
    """The VNF instance."""
    sub_object_instance_id: str | None = None
    metadata: JsonMapping = field(default_factory=dict)
    """Those of the threshold."""


OnCrossing = Callable[[Crossing], Awaitable[None]]
"""Acts on a crossing. It may be called more than once with the same one, and is called again if it raises an
VnfmError that is retryable."""


class CheckAutomation(Protocol):
    """Checks what the metadata of a threshold ask for when it is crossed."""

    async def __call__(self, instance_id: str, metadata: Mapping[str, Any], *, is_of_vnfcs: bool) -> None:
        """Raise InvalidInput that names what can never be done; NotFound. ``is_of_vnfcs``: whether its values are those of VNFCs."""
        ...
