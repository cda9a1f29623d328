"""Errors of regions that keep their codes from the service that owns them to the gateway."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable, Unprocessable


class RegionUnavailable(OutsideUnavailable, code="cluster-unavailable", title="Cluster unavailable"):
    """The API server of the region does not answer now."""


class UnknownKind(Unprocessable, code="unknown-kind", title="Unknown kind"):
    """The API server of the region does not serve the kind."""


class RegionLacks(Unprocessable, code="region-lacks", title="Not served by the cloud region"):
    """The cluster of a cloud region does not serve what the request needs."""
