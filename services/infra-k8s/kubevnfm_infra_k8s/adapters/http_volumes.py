"""The internal HTTP API of volumes, for the gateway and the steps of VNFs (libs/clients port PersistentVolumes)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.multicloud.types import revision_of
from kubevnfm_clients.multicloud.volumes import VolumePatch, VolumeRequest, VolumeUse

from kubevnfm_infra_k8s.adapters.internal_http import answer, body, filters, limits, page, wait_s
from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes


def volume_routes(volumes: PersistentVolumes) -> web.RouteTableDef:
    """Return the routes of volumes."""
    routes, many = web.RouteTableDef(), "/internal/v1/persistent-volumes"
    one = f"{many}/{{id}}"

    @routes.post(many)
    async def create(request: web.Request) -> web.Response:
        created = await volumes.create(await body(request, VolumeRequest), wait_s=wait_s(request))
        return web.json_response({"volume": created.volume.model_dump(mode="json"), "is_new": created.is_new})

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        limit, after = limits(request)
        found = await volumes.find(filters(request), limit=limit, after=after)
        return page("volumes", found.items, found.next_after)

    @routes.get(one)
    async def show(request: web.Request) -> web.Response:
        return answer(await volumes.get(request.match_info["id"]))

    @routes.patch(one)
    async def change(request: web.Request) -> web.Response:
        volume_id, patch = request.match_info["id"], await body(request, VolumePatch)
        return answer(
            await volumes.change(volume_id, patch, if_revision=revision_of(request.query), wait_s=wait_s(request))
        )

    @routes.delete(one)
    async def delete(request: web.Request) -> web.Response:
        volume_id = request.match_info["id"]
        return answer(await volumes.delete(volume_id, if_revision=revision_of(request.query), wait_s=wait_s(request)))

    @routes.put(f"{one}/uses")
    async def use(request: web.Request) -> web.Response:
        wanted = await body(request, VolumeUse)
        volume_id, reference = request.match_info["id"], request.query.get("reference", "")
        return answer(await volumes.use(volume_id, reference, wanted, wait_s=wait_s(request)))

    @routes.delete(f"{one}/uses")
    async def leave(request: web.Request) -> web.Response:
        volume_id, reference = request.match_info["id"], request.query.get("reference", "")
        is_gone = await volumes.leave(volume_id, reference, wait_s=wait_s(request))
        return web.json_response({"is_gone": is_gone})

    return routes
