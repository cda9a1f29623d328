"""Errors of regions, their clusters and charts that keep their codes from the service that owns them to the gateway."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict, OutsideUnavailable, Unprocessable, VnfmError


class RegionUnavailable(OutsideUnavailable, code="cluster-unavailable", title="Cluster unavailable"):
    """The API server of the region does not answer now."""


class ResourceMetricsUnavailable(
    OutsideUnavailable, code="resource-metrics-unavailable", title="Resource metrics unavailable"
):
    """The cluster does not serve ``metrics.k8s.io``, or its metrics-server does not answer."""


class Suspended(Conflict, code="suspended", title="Suspended", retryable=True):
    """The VNF instance or its cloud region is suspended: nothing is changed there."""


class PlaceTaken(Conflict, code="foreign-object", title="Kubernetes object exists"):
    """Objects of others have the names of objects of the VNF, in its namespace."""


class UnknownKind(Unprocessable, code="unknown-kind", title="Unknown kind"):
    """The API server of the region does not serve the kind."""


class RegionLacks(Unprocessable, code="region-lacks", title="Not served by the cloud region"):
    """The cluster of a cloud region does not serve what the request needs."""


class ChartNotFetched(VnfmError, code="chart-not-fetched", title="Helm chart not fetched", status=502):
    """A registry does not have the chart, has other content, or refuses us; a repeat would end as this one."""


class ChartUnavailable(OutsideUnavailable, code="chart-unavailable", title="Helm chart not available yet"):
    """The chart is being fetched, or its registry does not answer."""


class ChartRefused(VnfmError, code="chart-refused", title="Helm chart not rendered"):
    """The helm program cannot render the chart with the values of the request."""
