"""The cloud regions of the multi-cloud API (port CloudRegions): VIMs with an owner and a name of their own."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import InvalidInput, NotFound

from kubevnfm_vim_registry.records import StoredVim, VimRecords

_FILTERS = {"cloud_owner": "region/cloud_owner", "cloud_region": "region/cloud_region", "status": "status"}
"""The paths in the documents, by filter."""


class Regions:
    """Implements `kubevnfm_clients.multicloud.regions.CloudRegions`."""

    def __init__(self, records: VimRecords) -> None:
        self._records = records

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        wanted = dict[str, str]()
        for name, value in filters.items():
            if name == "cloud_region_id":
                wanted["region/id" if "/" in value else "region/cloud_region"] = value
            elif name in _FILTERS:
                wanted[_FILTERS[name]] = value
            else:
                raise InvalidInput(name, "unknown filter")
        found = await self._records.regions(wanted, limit=limit + 1, after=after)
        regions = [shown(stored) for stored in found[:limit]]
        return Page(regions, regions[-1].id if len(found) > limit else None)

    async def get(self, owner: str, region: str) -> CloudRegion:
        return shown(await self._get(owner, region))

    async def _get(self, owner: str, region: str) -> StoredVim:
        stored = await self._records.region(f"{owner}/{region}")
        if stored is None:
            raise NotFound(f"cloud region {owner}/{region} does not exist")
        return stored


def shown(stored: StoredVim) -> CloudRegion:
    """Return a region as clients see it."""
    vim, facts = stored.vim, stored.vim.region
    assert facts is not None
    return CloudRegion(
        id=facts.id,
        vim_id=vim.id,
        cloud_owner=facts.cloud_owner,
        cloud_region=facts.cloud_region,
        status=vim.status,
        created_at=vim.created_at,
        updated_at=vim.updated_at,
        revision=stored.revision,
    )
