"""The inventory as its users see it: what `adapters.http` serves as `kubevnfm_clients.multicloud.inventory.Inventory`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.multicloud.inventory import CURRENT, InventoryResource
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import NotFound

from kubevnfm_infra_k8s.domain.inventory.ports import InventoryRecords, WatchedRegions
from kubevnfm_infra_k8s.domain.reconciling.ports import Regions

_REGION: Final = "cloud_region_id"


@dataclass(frozen=True)
class StoredInventory:
    """The records, with what is known of their regions' watches."""

    records: InventoryRecords
    watched: WatchedRegions
    regions: Regions

    async def find(
        self, filters: Mapping[str, str], *, limit: int, after: str | None = None
    ) -> Page[InventoryResource]:
        """Return objects by id. A region that does not exist has none."""
        wanted = dict(filters)
        if _REGION in wanted:
            try:
                wanted["vim_id"] = (await self.regions.region(wanted.pop(_REGION))).vim_id
            except NotFound:
                return Page([])
        found = await self.records.page(wanted, limit=limit + 1, after=after)
        stale = await self.watched.stale({record.watched_as for record in found})
        shown = []
        for record in found[:limit]:
            state = stale.get(record.watched_as)
            watch = CURRENT if state is None else f"stale since {state.since}"
            shown.append(record.shown(watch, "" if state is None else state.reason))
        return Page(shown, shown[-1].id if len(found) > limit else None)
