"""Health checks: runs of the tests of a VNF's charts, which infra-k8s does (multicloud.md MC-134, MC-141)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import aiohttp
from kubevnfm_kit.error_text import ErrorText

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.types import MultiCloudType

CheckStatus = Literal["Running", "Succeeded", "Failed", "Unknown"]
"""In the words of Helm. ``Unknown``: the region did not say how a test has ended."""


class HookResult(MultiCloudType):
    """One test of a health check."""

    api_version: str
    kind: str
    namespace: str
    name: str
    status: CheckStatus | None = None
    """None: it has not begun yet."""
    started_at: str | None = None
    completed_at: str | None = None
    reason: ErrorText = ""
    """Why it has failed, with the end of its log."""


class HealthCheck(MultiCloudType):
    """A health check of a VNF instance."""

    id: str
    vnf_instance_id: str
    status: CheckStatus
    started_at: str
    completed_at: str | None = None
    reason: ErrorText = ""
    """Why there is no progress, or no result."""
    results: tuple[HookResult, ...] = ()
    """In the order in which they run."""


class HealthChecks(Protocol):
    """Served by infra-k8s: ``/internal/v1/vnf-instances/{id}/health-checks``. May raise OutsideUnavailable."""

    async def create(self, vnf_instance_id: str) -> HealthCheck:
        """Begin a check. Raises Conflict while another one runs, or if the instance has no objects in a region."""
        ...

    async def find(self, vnf_instance_id: str) -> Sequence[HealthCheck]:
        """Return the checks of an instance, the oldest first."""
        ...

    async def get(self, vnf_instance_id: str, check_id: str) -> HealthCheck:
        """Return a check. Raises NotFound."""
        ...

    async def delete(self, vnf_instance_id: str, check_id: str) -> None:
        """Have a check stopped, and removed with the objects of its tests. Raises NotFound."""
        ...


class HttpHealthChecks:
    """`HealthChecks` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def create(self, vnf_instance_id: str) -> HealthCheck:
        path = "vnf-instances", vnf_instance_id, "health-checks"
        return HealthCheck.model_validate(await self._api.call("POST", *path))

    async def find(self, vnf_instance_id: str) -> Sequence[HealthCheck]:
        found = await self._api.call("GET", "vnf-instances", vnf_instance_id, "health-checks")
        return [HealthCheck.model_validate(each) for each in found["health_checks"]]

    async def get(self, vnf_instance_id: str, check_id: str) -> HealthCheck:
        path = "vnf-instances", vnf_instance_id, "health-checks", check_id
        return HealthCheck.model_validate(await self._api.call("GET", *path))

    async def delete(self, vnf_instance_id: str, check_id: str) -> None:
        await self._api.call("DELETE", "vnf-instances", vnf_instance_id, "health-checks", check_id)
