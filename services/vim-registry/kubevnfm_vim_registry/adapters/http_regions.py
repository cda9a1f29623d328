"""The internal HTTP API of cloud regions, for the gateway (libs/clients port CloudRegions)."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from aiohttp import web
from kubevnfm_clients.multicloud.regions import CloudRegion, Kubeconfig, ObjectsWanted, RegionPatch, RegionRequest
from kubevnfm_clients.multicloud.suspension import SuspensionRequest
from kubevnfm_clients.multicloud.types import revision_of
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_vim_registry.region_reading import RegionReading
from kubevnfm_vim_registry.region_suspensions import RegionSuspensions
from kubevnfm_vim_registry.regions import Regions

K = TypeVar("K", bound=Kubeconfig)


def region_routes(regions: Regions, reading: RegionReading, suspensions: RegionSuspensions) -> web.RouteTableDef:
    """Return the routes of cloud regions."""
    routes = web.RouteTableDef()
    many = "/internal/v1/cloud-regions"
    one = f"{many}/{{owner}}/{{region}}"

    @routes.post(many)
    async def register(request: web.Request) -> web.Response:
        region, is_new = await regions.register(await _read(request, RegionRequest))
        return web.json_response({"region": _document(region), "is_new": is_new})

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        filters = {name: value for name, value in request.query.items() if name not in {"limit", "after"}}
        page = await regions.find(filters, limit=int(request.query["limit"]), after=request.query.get("after"))
        items = [_document(region) for region in page.items]
        return web.json_response({"regions": items, "next_after": page.next_after})

    @routes.get(one)
    async def show(request: web.Request) -> web.Response:
        return web.json_response(_document(await regions.get(*_key(request))))

    @routes.get(f"{one}/health")
    async def health(request: web.Request) -> web.Response:
        stored = await regions.stored(*_key(request))
        return web.json_response((await reading.health(stored.vim)).model_dump(mode="json"))

    @routes.get(f"{one}/features")
    async def features(request: web.Request) -> web.Response:
        stored = await regions.stored(*_key(request))
        found = await reading.features(stored.vim)
        # In a thread: those of 5,000 nodes are some 20 MB.
        return web.json_response(text=await asyncio.to_thread(found.model_dump_json))

    @routes.get(f"{one}/resources")
    async def resources(request: web.Request) -> web.Response:
        stored = await regions.stored(*_key(request))
        query = dict(request.query)
        limit, after = int(query.pop("limit")), query.pop("after", None)
        wanted = ObjectsWanted.model_validate(query)
        page = await reading.resources(stored.vim, wanted, limit=limit, after=after)
        items = [item.model_dump(mode="json") for item in page.items]
        return web.json_response({"items": items, "next_after": page.next_after})

    @routes.patch(one)
    async def change(request: web.Request) -> web.Response:
        patch = RegionPatch.model_validate(read_foreign(await request.read()))
        changed = await regions.change(*_key(request), patch, if_revision=revision_of(request.query))
        return web.json_response(_document(changed))

    @routes.put(f"{one}/kubeconfig")
    async def rotate(request: web.Request) -> web.Response:
        access = await _read(request, Kubeconfig)
        changed = await regions.rotate(*_key(request), access, if_revision=revision_of(request.query))
        return web.json_response(_document(changed))

    @routes.put(f"{one}/suspension")
    async def suspend(request: web.Request) -> web.Response:
        body = read_foreign(await request.read())
        wanted, by = SuspensionRequest(reason=body["reason"]), str(body["by"])
        return web.json_response((await suspensions.suspend(*_key(request), wanted, by=by)).model_dump(mode="json"))

    @routes.delete(f"{one}/suspension")
    async def resume(request: web.Request) -> web.Response:
        await suspensions.resume(*_key(request))
        return web.Response(status=204)

    @routes.get("/internal/v1/region-suspensions")
    async def find_suspensions(request: web.Request) -> web.Response:
        found = await suspensions.all()
        return web.json_response({"suspensions": {vim_id: one.model_dump() for vim_id, one in found.items()}})

    @routes.delete(one)
    async def delete(request: web.Request) -> web.Response:
        await regions.delete(*_key(request), if_revision=revision_of(request.query))
        return web.Response(status=204)

    return routes


def _key(request: web.Request) -> tuple[str, str]:
    return request.match_info["owner"], request.match_info["region"]


async def _read(request: web.Request, model: type[K]) -> K:
    return model.model_validate(read_foreign(await request.read()))


def _document(region: CloudRegion) -> JsonObject:
    return region.model_dump(mode="json", by_alias=True)
