"""The inventory: the objects of VNFs that exist in the regions. infra-k8s owns it (multicloud.md chapter 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import aiohttp
from kubevnfm_events.inventory import NetworkAddresses
from pydantic import Field

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.region_views import RegionWatch
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
    ready: bool | None = Field(default=None, exclude_if=lambda value: value is None)
    """Whether a pod or virtual machine is ready; absent: it does not say."""
    trouble: str = Field(default="", exclude_if=lambda value: not value)
    """Why it does not start, or has ended."""
    created_at: str
    changed_at: str
    """When its last change was seen."""
    watch: str
    """``current``, or ``stale since <time>`` if the region cannot be watched."""
    watch_detail: str = Field(default="", exclude_if=lambda value: not value)
    """The reason why it cannot be watched."""


class ExportFailure(MultiCloudType):
    """An entry that A&AI has refused."""

    id: str
    """That of the entry of the inventory; for others ``link:<id>`` or ``features:<VIM>``."""
    reason: str
    tries: int
    since: str
    """When it was changed first since A&AI has had it."""
    again_at: str


class Resync(MultiCloudType):
    """The last resynchronization."""

    asked_at: str
    marked: int
    """Entries that have been marked so far; they are exported with all others."""
    marked_at: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """When all were marked; absent: not yet."""


class ExportHealth(MultiCloudType):
    """The export to A&AI."""

    reachable: bool | None = Field(default=None, exclude_if=lambda value: value is None)
    """Whether A&AI answers; absent: nothing was sent yet."""
    reachable_since: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Since when it does, or does not."""
    reason: str = Field(default="", exclude_if=lambda value: not value)
    """The reason why it is not reachable."""
    waiting: int
    """Entries, links and regions that A&AI does not have as they are; of each kind at most 10,000 are counted."""
    waiting_since: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The time of the oldest change that A&AI does not have."""
    lag_s: float
    """The age of it; 0: A&AI has everything."""
    refused: int
    """How many of those that wait A&AI has refused; they are tried again."""
    failures: Sequence[ExportFailure] = ()
    """Up to ten of them, those with the most tries first."""
    resync: Resync | None = Field(default=None, exclude_if=lambda value: value is None)


class StaleWatch(MultiCloudType):
    """A kind of a region that cannot be watched."""

    vim_id: str
    api_version: str
    kind: str
    since: str
    reason: str


class InventoryReport(MultiCloudType):
    """Whether the inventory is current, and whether it is exported."""

    watching: bool
    """Whether a process watches."""
    stale: Sequence[StaleWatch]
    """Up to 100 kinds that cannot be watched."""
    export: ExportHealth | None = Field(default=None, exclude_if=lambda value: value is None)
    """Absent: there is no export."""


class WatchReport(MultiCloudType):
    """The watches that do not work."""

    unwatched_since: str = ""
    """Since when no process watches; empty: one does."""
    regions: Sequence[StaleWatch] = ()
    """Each region that cannot be watched, with the kind that cannot for the longest time; up to 1,000."""


class Inventory(Protocol):
    """Served by infra-k8s: ``/internal/v1/inventory/``. May raise OutsideUnavailable."""

    async def health(self) -> InventoryReport:
        """Return the state of the watches and of the export."""
        ...

    async def watch_of(self, vim_id: str) -> RegionWatch:
        """Return the state of the watch over a region."""
        ...

    async def watches(self, vim_id: str | None = None) -> WatchReport:
        """Return the watches over all regions, or over that of this VIM, that do not work."""
        ...

    async def resync(self) -> Resync:
        """Have everything exported again. Raises Conflict if there is no export."""
        ...

    async def find(
        self, filters: Mapping[str, str], *, limit: int, after: str | None = None
    ) -> Page[InventoryResource]:
        """Return objects by id; ``filters``: values by attribute; ``after``: the id behind which the page begins."""
        ...


class HttpInventory:
    """`Inventory` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def health(self) -> InventoryReport:
        return InventoryReport.model_validate(await self._api.call("GET", "inventory", "health"))

    async def watch_of(self, vim_id: str) -> RegionWatch:
        return RegionWatch.model_validate(await self._api.call("GET", "inventory", "watches", vim_id))

    async def watches(self, vim_id: str | None = None) -> WatchReport:
        query = {} if vim_id is None else {"vim_id": vim_id}
        return WatchReport.model_validate(await self._api.call("GET", "inventory", "watches", query=query))

    async def resync(self) -> Resync:
        return Resync.model_validate(await self._api.call("POST", "inventory", "resync"))

    async def find(
        self, filters: Mapping[str, str], *, limit: int, after: str | None = None
    ) -> Page[InventoryResource]:
        query = {**filters, "limit": str(limit), **({} if after is None else {"after": after})}
        answer = await self._api.call("GET", "inventory", "resources", query=query)
        return Page([InventoryResource.model_validate(one) for one in answer["resources"]], answer["next_after"])
