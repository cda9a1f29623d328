"""Suspensions of cloud regions (multicloud.md MC-139): services ask here before they change something in a region."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from kubevnfm_clients.multicloud.suspension import Suspension, SuspensionRequest
from kubevnfm_kit.errors import NotFound
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_vim_registry.domain.region import RegionFacts
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.regions import Regions

log = structlog.get_logger()


class RegionSuspensions:
    """The part of `kubevnfm_clients.multicloud.regions.CloudRegions` that is about suspensions."""

    def __init__(self, records: VimRecords, regions: Regions) -> None:
        self._records, self._regions = records, regions

    @repeat_lost_writes
    async def suspend(self, owner: str, region: str, wanted: SuspensionRequest, *, by: str) -> Suspension:
        """Suspend a region, or give another reason. Raises NotFound."""
        stored, facts = await self._region(owner, region)
        since = facts.suspended.since if facts.suspended is not None else self._records.now()
        suspension = Suspension(by=by, since=since, reason=wanted.reason, scope="region")
        if suspension != facts.suspended:
            await self._write(stored, facts, suspension)
            log.info("region_suspended", region=facts.id, vim_id=stored.vim.id, by=by)
        return suspension

    @repeat_lost_writes
    async def resume(self, owner: str, region: str) -> None:
        """End the suspension. Raises NotFound if there is none."""
        stored, facts = await self._region(owner, region)
        if facts.suspended is None:
            raise NotFound(f"cloud region {facts.id} is not suspended")
        await self._write(stored, facts, None)
        log.info("region_resumed", region=facts.id, vim_id=stored.vim.id)

    async def all(self) -> Mapping[str, Suspension]:
        """Return the suspensions of all regions, by the id of the VIM."""
        found = ((each.vim.id, each.vim.region) for each in await self._records.suspended())
        return {vim_id: facts.suspended for vim_id, facts in found if facts is not None and facts.suspended is not None}

    async def _region(self, owner: str, region: str) -> tuple[StoredVim, RegionFacts]:
        stored = await self._regions.stored(owner, region)
        assert stored.vim.region is not None
        return stored, stored.vim.region

    async def _write(self, stored: StoredVim, facts: RegionFacts, suspension: Suspension | None) -> None:
        changed = facts.model_copy(update={"suspended": suspension})
        vim = stored.vim.model_copy(update={"region": changed, "updated_at": self._records.now()})
        await self._records.replace(stored, vim)
