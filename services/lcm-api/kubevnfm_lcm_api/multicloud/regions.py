"""``/multicloud/v1/cloud-regions``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.conditions import answer, entity_tag
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, page_of
from kubevnfm_lcm_api.multicloud.pages import PARAMETERS, page_answer, read_page
from kubevnfm_lcm_api.multicloud.services import PREFIX, services

_MANY: Final = f"{PREFIX}/cloud-regions"
_ONE: Final = f"{_MANY}/{{owner}}/{{region}}"
_FILTERS: Final = (
    Parameter("cloud_region_id", "The id, or the name of the region alone"),
    Parameter("cloud_owner", "Equal to this"),
    Parameter("cloud_region", "Equal to this"),
    Parameter("status", "Equal to this", values=("ACTIVE", "UNREACHABLE", "ERROR")),
)


async def list_all(request: web.Request) -> web.Response:
    """GET cloud-regions: a page of them, by id."""
    asked = read_page(request, _FILTERS)
    page = await services(request).regions.find(asked.filters, limit=asked.limit, after=asked.after)
    return page_answer(request, asked, page, _shown)


async def show(request: web.Request) -> web.Response:
    """GET cloud-regions/{owner}/{region}: 200 with ETag, or 304."""
    region = await _region(request)
    return answer(request, _shown(region), entity_tag("cloud-regions", region), region.updated_at)


async def _region(request: web.Request) -> CloudRegion:
    return await services(request).regions.get(request.match_info["owner"], request.match_info["region"])


def _shown(region: CloudRegion) -> JsonObject:
    return region.model_dump(mode="json", by_alias=True, exclude={"revision"})


def routes() -> Iterator[Route]:
    """Yield the routes of cloud regions."""
    tag = "Cloud regions"
    shown = {200: Answer("The region", CloudRegion, has_etag=True)}
    yield Route(tag, "GET", _MANY, list_all, "List regions", page_of(CloudRegion), query=(*_FILTERS, *PARAMETERS))
    yield Route(tag, "GET", _ONE, show, "Show a region", shown)
