"""Suspensions for maintenance (multicloud.md MC-139): while there is one, kubevnfm changes nothing, and drift is not reported."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from kubevnfm_clients.multicloud.errors import Suspended
from kubevnfm_clients.multicloud.types import MultiCloudRequest, MultiCloudType


class SuspensionRequest(MultiCloudRequest):
    """A suspension to begin, or another reason for it."""

    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1024)]


class Suspension(MultiCloudType):
    """A suspension of a VNF instance or a cloud region."""

    by: str
    """The caller that has given the reason."""
    since: str
    """When it began; another reason does not change it."""
    reason: str
    scope: Literal["instance", "region"]

    def refusal(self, what: str) -> Suspended:
        """Return the error for a request that would change something; ``what`` is suspended."""
        return Suspended(f"{what} is suspended since {self.since} by {self.by}: {self.reason}")
