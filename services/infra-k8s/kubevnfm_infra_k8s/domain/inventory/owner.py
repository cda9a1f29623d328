"""The inventory as its users see it: what `adapters.http` serves as `kubevnfm_clients.multicloud.inventory.Inventory`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubevnfm_clients.multicloud.inventory import (
    CURRENT,
    InventoryReport,
    InventoryResource,
    Resync,
    StaleWatch,
    WatchReport,
)
from kubevnfm_clients.multicloud.region_views import RegionWatch
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import Conflict, NotFound

from kubevnfm_infra_k8s.domain.inventory.ports import ExportState, InventoryRecords, WatchedRegions
from kubevnfm_infra_k8s.domain.reconciling.ports import Regions

_REGION: Final = "cloud_region_id"
_MOST_STALE: Final = 100
_MOST_REGIONS: Final = 1000


@dataclass(frozen=True)
class StoredInventory:
    """The records, with what is known of their regions' watches."""

    records: InventoryRecords
    watched: WatchedRegions
    regions: Regions
    clock: Clock
    export: ExportState | None = None

    async def health(self) -> InventoryReport:
        """Return the state of the watches and of the export."""
        stale = [
            StaleWatch(vim_id=vim_id, api_version=version, kind=kind, since=each.since, reason=each.reason)
            for vim_id, (version, kind), each in await self.watched.all_stale(limit=_MOST_STALE)
        ]
        return InventoryReport(
            watching=await self.watched.is_watching(),
            stale=stale,
            export=None if self.export is None else await self.export.health(),
        )

    async def watch_of(self, vim_id: str) -> RegionWatch:
        """Return the state of the watch over a region, and for how long it has been in it (MC-080)."""
        found = await self.watched.watch_of(vim_id)
        if found is None:
            return RegionWatch(state="none")
        since, stale = found
        if not stale:
            return RegionWatch(state="current", since=since, age_s=self._age(since))
        (_, kind), first = min(stale, key=lambda each: each[1].since)
        reason = f"{kind}: {first.reason}"
        return RegionWatch(state="stale", since=first.since or None, age_s=self._age(first.since), reason=reason)

    async def watches(self, vim_id: str | None = None) -> WatchReport:
        """Return the regions, or the one of this VIM, that cannot be watched, each with the kind that cannot for the longest time."""
        regions = []
        for region, stale in await self.watched.stale_regions(vim_id=vim_id, limit=_MOST_REGIONS):
            (version, kind), first = min(stale, key=lambda each: each[1].since)
            regions.append(
                StaleWatch(vim_id=region, api_version=version, kind=kind, since=first.since, reason=first.reason)
            )
        return WatchReport(unwatched_since=await self.watched.unwatched_since(), regions=regions)

    def _age(self, since: str) -> float | None:
        if not since:
            return None
        return max(0.0, round((self.clock.now() - datetime.fromisoformat(since)).total_seconds(), 3))

    async def resync(self) -> Resync:
        """Have everything exported again. Raises Conflict if there is no export."""
        if self.export is None:
            raise Conflict("the inventory is not exported: aai_url is not set")
        await self.export.resync()
        resync = (await self.export.health()).resync
        assert resync is not None
        return resync

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
