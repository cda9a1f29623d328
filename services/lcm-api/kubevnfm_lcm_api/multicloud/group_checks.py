"""The regions of a group operation, and the checks of all of them before the first one is begun (multicloud.md MC-140)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubevnfm_clients.multicloud.regions import CloudRegion, CloudRegions
from kubevnfm_csar.manifest_values import merged
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable, Unprocessable
from kubevnfm_kit.json_pointer import escaped
from kubevnfm_secrets import hide

from kubevnfm_lcm_api.lifecycle.core.request_parameters import VALUES
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud import vnf_requests
from kubevnfm_lcm_api.multicloud.group_schema import MOST_REGIONS
from kubevnfm_lcm_api.multicloud.group_types import REGIONS, RegionSelector, read_regions
from kubevnfm_lcm_api.multicloud.profile_checks import fulfils
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstanceRequest

OF_GROUPS: Final = ("regions", "values_by_region", "parallel", "stop_after_failures")
_AT_ONCE: Final = 10
_PAGE: Final = 500
_MOST_FAULTS: Final = 100
_MOST_BYTES: Final = 64 * 2**20
"""JSON of the requests for all regions together. Each is checked, which takes a second or two of processor time for each 2 MiB of values."""


@dataclass(frozen=True)
class Group:
    """The regions of a group operation, and the request for each."""

    regions: Sequence[CloudRegion]
    request: Mapping[str, Any]
    """Without a region."""
    values: Mapping[str, Any]
    """By region, over those of the request."""

    def hidden(self, names: Collection[str]) -> Group:
        """Return it with the values of secrets hidden, as it is stored; ``names``: further names of secrets."""
        request = dict(self.request)
        for name in (VALUES, "oof_parameters"):
            if name in request:
                request[name] = hide(request[name], names)
        return replace(self, request=request, values=hide(self.values, names))

    def body(self, region_id: str) -> dict[str, Any]:
        """Return the body of a request for one region."""
        return body_for(self.request, self.values, region_id)


def body_for(request: Mapping[str, Any], values: Mapping[str, Any], region_id: str) -> dict[str, Any]:
    """Return the body of a request for one region of a group."""
    body = {**request, "cloud_region_id": region_id}
    if values.get(region_id):
        body[VALUES] = merged(body.get(VALUES) or {}, values[region_id])
    return body


async def read_group(regions: CloudRegions, body: Mapping[str, Any]) -> Group:
    """Return the group that a request asks for. Raises Unprocessable."""
    if body.get("cloud_region_id") is not None:
        raise Unprocessable(REGIONS, "not expected beside cloud_region_id: leave one of them out")
    wanted = read_regions(body[REGIONS])
    values: dict[str, Any] = {}
    if isinstance(wanted, RegionSelector):
        found = await _selected(regions, wanted)
    else:
        found = []
        for index, each in enumerate(wanted):
            place = f"{REGIONS}[{index}]/cloud_region_id"
            region = await vnf_requests.named_region(regions, each.cloud_region_id, place)
            if region.id in values:
                raise Unprocessable(REGIONS, f"each region once expected, {region.id} is given twice")
            values[region.id] = each.values
            found.append(region)
    if not found:
        raise Unprocessable(REGIONS, "no region fulfils the selector")
    if len(found) > MOST_REGIONS:
        raise Unprocessable(REGIONS, f"at most {MOST_REGIONS} regions expected; the selector finds more")
    for region_id, given in (body.get("values_by_region") or {}).items():
        place = f"values_by_region/{escaped(str(region_id))}"
        if region_id not in {each.id for each in found}:
            raise Unprocessable(place, "the id of a region of the group expected: <owner>/<region>")
        if not isinstance(given, Mapping):
            raise Unprocessable(place, "an object expected")
        values[region_id] = merged(given, values.get(region_id) or {})
    request = {name: value for name, value in body.items() if name not in OF_GROUPS and value is not None}
    group = Group(
        sorted(found, key=lambda each: each.id), request, {name: each for name, each in values.items() if each}
    )
    # In a thread: a request may have megabytes.
    if await asyncio.to_thread(_bytes_of, group) > _MOST_BYTES:
        expected = f"at most {_MOST_BYTES} bytes of JSON in the requests for all regions together expected"
        raise Unprocessable(REGIONS, f"{expected}: fewer regions, or fewer values for all of them")
    return group


def _bytes_of(group: Group) -> int:
    """Return the size of the requests for all regions, without the texts of secrets."""
    own = sum(len(json.dumps(each, default=str)) for each in group.values.values())
    return len(json.dumps(group.request, default=str)) * len(group.regions) + own


async def check_all(
    on: RequestServices,
    regions: CloudRegions,
    group: Group,
    asked: VnfInstanceRequest,
    vnf_ids: Mapping[str, str],
    by: str,
) -> None:
    """Check the request for each region; one that does not answer now fails later. Raises Unprocessable with up to 100 faults.

    ``asked``: the request for any of them.
    """
    gate = asyncio.Semaphore(_AT_ONCE)

    faults: list[tuple[str, str]] = []

    async def check(region: CloudRegion) -> None:
        async with gate:
            if len(faults) >= _MOST_FAULTS:
                return
            body = group.body(region.id)
            try:
                # Not read again for each: a request may have megabytes.
                wanted = asked.model_copy(update={"cloud_region_id": region.id, VALUES: body.get(VALUES) or {}})
                await vnf_requests.check(
                    on, regions, region, wanted, body, Origin(by, "create"), instance_id=vnf_ids[region.id]
                )
            except OutsideUnavailable:
                return
            except InvalidInput as error:
                faults.extend((place, f"cloud region {region.id}: {reason}") for place, reason in error.places)

    await asyncio.gather(*map(check, group.regions))
    if faults:
        raise Unprocessable(*faults[0], *faults[1:_MOST_FAULTS])


async def _selected(regions: CloudRegions, selector: RegionSelector) -> list[CloudRegion]:
    found: list[CloudRegion] = []
    after: str | None = None
    while True:
        page = await regions.find({}, limit=_PAGE, after=after)
        found += [each for each in page.items if selector.fits(each.labels)]
        after = page.next_after
        if after is None:
            break
    if not selector.features:
        return found
    gate = asyncio.Semaphore(_AT_ONCE)

    async def has_features(region: CloudRegion) -> bool:
        async with gate:
            try:
                features = await regions.features(region.cloud_owner, region.cloud_region)
            except OutsideUnavailable:
                # Nothing is known of its nodes.
                return False
        return await asyncio.to_thread(fulfils, features, selector.features)

    fits = await asyncio.gather(*map(has_features, found))
    return [region for region, is_one in zip(found, fits, strict=True) if is_one]
