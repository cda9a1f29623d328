"""Reads the objects of a VNF from its region (multicloud.md MC-043)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from kubevnfm_clients.multicloud.errors import UnknownKind
from kubevnfm_clients.multicloud.regions import CloudRegions, ObjectsWanted

from kubevnfm_lcm_api.lifecycle.core.cloud_place import CloudPlace
from kubevnfm_lcm_api.multicloud.vnf_types import VnfResource

_AT_ONCE: Final = 10


async def seen(regions: CloudRegions, place: CloudPlace, resources: Sequence[VnfResource]) -> tuple[VnfResource, ...]:
    """Return the objects with what the region has of each now, by one call each. Raises RegionUnavailable."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def look(each: VnfResource) -> VnfResource:
        wanted = ObjectsWanted(apiVersion=each.api_version, kind=each.kind, namespace=each.namespace, name=each.name)
        async with gate:
            try:
                page = await regions.resources(*place.key, wanted, limit=1)
            except UnknownKind:
                return each.model_copy(update={"ready": False, "live": "missing"})
        if not page.items:
            return each.model_copy(update={"ready": False, "live": "missing"})
        metadata = page.items[0].model_dump().get("metadata") or {}
        if metadata.get("uid") != each.uid:
            return each.model_copy(update={"ready": False, "live": "replaced"})
        return each.model_copy(update={"live": "present"})

    return tuple(await asyncio.gather(*map(look, resources)))
