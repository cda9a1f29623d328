"""Cloud regions: clusters that were registered by kubeconfig. vim-registry owns them; each is one of its VIMs (multicloud.md MC-071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import aiohttp
from kubevnfm_events.vim import VimStatus

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.types import MultiCloudType, Page

RegionAuth = Literal["token", "client-certificate", "oidc"]


class CloudRegion(MultiCloudType):
    """A registered region; no part of its kubeconfig is shown."""

    id: str
    """``<owner>/<region>``."""
    vim_id: str
    cloud_owner: str
    cloud_region: str
    status: VimStatus
    created_at: str
    updated_at: str
    revision: int = 0
    """The document's; for conditional writes, and not shown."""


class CloudRegions(Protocol):
    """Served by vim-registry: ``/internal/v1/cloud-regions``."""

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        """Return regions by id; ``filters``: values by attribute; ``after``: the id behind which the page begins."""
        ...

    async def get(self, owner: str, region: str) -> CloudRegion:
        """Return a region. Raises NotFound."""
        ...


class HttpCloudRegions:
    """`CloudRegions` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("vim-registry", base_url, token, session)

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        query = {**filters, "limit": str(limit)}
        answer = await self._api.call(
            "GET", "cloud-regions", query=query if after is None else {**query, "after": after}
        )
        return Page([CloudRegion.model_validate(one) for one in answer["regions"]], answer["next_after"])

    async def get(self, owner: str, region: str) -> CloudRegion:
        return CloudRegion.model_validate(await self._api.call("GET", "cloud-regions", owner, region))
