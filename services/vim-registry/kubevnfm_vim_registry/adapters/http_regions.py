"""The internal HTTP API of cloud regions, for the gateway (libs/clients port CloudRegions)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.multicloud.regions import CloudRegion

from kubevnfm_vim_registry.regions import Regions


def region_routes(regions: Regions) -> web.RouteTableDef:
    """Return the routes of cloud regions."""
    routes = web.RouteTableDef()
    many = "/internal/v1/cloud-regions"

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        filters = {name: value for name, value in request.query.items() if name not in {"limit", "after"}}
        page = await regions.find(filters, limit=int(request.query["limit"]), after=request.query.get("after"))
        items = [_document(region) for region in page.items]
        return web.json_response({"regions": items, "next_after": page.next_after})

    @routes.get(f"{many}/{{owner}}/{{region}}")
    async def show(request: web.Request) -> web.Response:
        return _answer(await regions.get(request.match_info["owner"], request.match_info["region"]))

    return routes


def _document(region: CloudRegion) -> dict[str, object]:
    return region.model_dump(mode="json", by_alias=True)


def _answer(region: CloudRegion) -> web.Response:
    return web.json_response(_document(region))
