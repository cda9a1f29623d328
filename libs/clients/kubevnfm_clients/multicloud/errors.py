"""Errors of regions that keep their codes from the service that owns them to the gateway."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict, OutsideUnavailable, Unprocessable


class RegionUnavailable(OutsideUnavailable, code="cluster-unavailable", title="Cluster unavailable"):
    """The API server of the region does not answer now."""


class Suspended(Conflict, code="suspended", title="Suspended", retryable=True):
    """The VNF instance or its cloud region is suspended: nothing is changed there."""


class PlaceTaken(Conflict, code="foreign-object", title="Kubernetes object exists"):
    """Objects of others have the names of objects of the VNF, in its namespace."""


class UnknownKind(Unprocessable, code="unknown-kind", title="Unknown kind"):
    """The API server of the region does not serve the kind."""


class RegionLacks(Unprocessable, code="region-lacks", title="Not served by the cloud region"):
    """The cluster of a cloud region does not serve what the request needs."""
