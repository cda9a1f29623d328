"""The inventory: the objects of VNFs that exist in the regions. infra-k8s owns it (multicloud.md chapter 14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import aiohttp
from kubevnfm_events.inventory import NetworkAddresses
from pydantic import Field

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.types import MultiCloudType, Page

CURRENT: Final = "current"


class InventoryResource(MultiCloudType):
    """An object that exists in a region."""

    id: str
    vim_id: str
    """The VIM of the region."""
    vnf_id: str
    vdu_id: str | None = Field(default=None, exclude_if=lambda value: value is None)
    priority: int | None = Field(default=None, exclude_if=lambda value: value is None)
    """Its place in the order of the package's artifacts."""
    api_version: str
    kind: str
    namespace: str = ""
    name: str
    uid: str
    node: str = ""
    """The node of a pod or virtual machine; empty until it is scheduled."""
    phase: str = ""
    networks: tuple[NetworkAddresses, ...] = ()
    """Its addresses by network."""
    created_at: str
    changed_at: str
    """When its last change was seen."""
    watch: str
    """``current``, or ``stale since <time>`` if the region cannot be watched."""
    watch_detail: str = Field(default="", exclude_if=lambda value: not value)
    """The reason why it cannot be watched."""


class Inventory(Protocol):
    """Served by infra-k8s: ``/internal/v1/inventory/resources``. May raise OutsideUnavailable."""

    async def find(
        self, filters: Mapping[str, str], *, limit: int, after: str | None = None
    ) -> Page[InventoryResource]:
        """Return objects by id; ``filters``: values by attribute; ``after``: the id behind which the page begins."""
        ...


class HttpInventory:
    """`Inventory` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def find(
        self, filters: Mapping[str, str], *, limit: int, after: str | None = None
    ) -> Page[InventoryResource]:
        query = {**filters, "limit": str(limit), **({} if after is None else {"after": after})}
        answer = await self._api.call("GET", "inventory", "resources", query=query)
        return Page([InventoryResource.model_validate(one) for one in answer["resources"]], answer["next_after"])
