"""Reads the objects of a VNF from its region (multicloud.md MC-043, MC-049)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from kubevnfm_clients.multicloud.errors import RegionUnavailable, UnknownKind
from kubevnfm_clients.multicloud.regions import CloudRegions, ObjectsWanted
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.lifecycle.core.cloud_place import CloudPlace
from kubevnfm_lcm_api.multicloud.vnf_types import VnfResource

T = TypeVar("T")
_AT_ONCE: Final = 10
_LONGEST_S: Final = 60.0


async def seen(regions: CloudRegions, place: CloudPlace, resources: Sequence[VnfResource]) -> tuple[VnfResource, ...]:
    """Return the objects with what the region has of each now. Raises as `looked_at`."""

    async def alone(resource: VnfResource, _: JsonObject | None) -> VnfResource:
        return resource

    return await looked_at(regions, place, resources, alone)


async def looked_at(
    regions: CloudRegions,
    place: CloudPlace,
    resources: Sequence[VnfResource],
    then: Callable[[VnfResource, JsonObject | None], Awaitable[T]],
) -> tuple[T, ...]:
    """Read each object by one call; return what ``then`` makes of it and of its body, None if the region has it no more.

    No more than ten bodies are in memory at a time. Raises Unprocessable, RegionUnavailable.
    """
    gate = asyncio.Semaphore(_AT_ONCE)

    async def look(each: VnfResource) -> T:
        async with gate:
            return await then(*await _read(regions, place, each))

    try:
        async with asyncio.timeout(_LONGEST_S):
            return tuple(await asyncio.gather(*map(look, resources)))
    except TimeoutError as error:
        reason = f"cloud region {place.cloud_region_id} did not answer for all objects within {_LONGEST_S:g} s"
        raise RegionUnavailable(reason) from error


async def _read(regions: CloudRegions, place: CloudPlace, each: VnfResource) -> tuple[VnfResource, JsonObject | None]:
    wanted = ObjectsWanted(apiVersion=each.api_version, kind=each.kind, namespace=each.namespace, name=each.name)
    try:
        items = (await regions.resources(*place.key, wanted, limit=1)).items
    except UnknownKind:
        items = ()
    if not items:
        return each.model_copy(update={"ready": False, "live": "missing"}), None
    body = items[0].model_dump()
    if (body.get("metadata") or {}).get("uid") != each.uid:
        return each.model_copy(update={"ready": False, "live": "replaced"}), None
    return each.model_copy(update={"live": "present"}), body
