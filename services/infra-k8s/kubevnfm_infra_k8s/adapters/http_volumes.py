"""The internal HTTP API of volumes, for the gateway and the steps of VNFs (libs/clients port PersistentVolumes)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.multicloud.types import MultiCloudType
from kubevnfm_clients.multicloud.volumes import VolumePatch, VolumeRequest, VolumeUse
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes


def volume_routes(volumes: PersistentVolumes) -> web.RouteTableDef:
    """Return the routes of volumes."""
    routes, many = web.RouteTableDef(), "/internal/v1/persistent-volumes"
    one = f"{many}/{{id}}"

    @routes.post(many)
    async def create(request: web.Request) -> web.Response:
        wanted = VolumeRequest.model_validate(read_foreign(await request.read()))
        created = await volumes.create(wanted, wait_s=_wait_s(request))
        return web.json_response({"volume": created.volume.model_dump(mode="json"), "is_new": created.is_new})

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        filters = {name: value for name, value in request.query.items() if name not in {"limit", "after"}}
        page = await volumes.find(filters, limit=int(request.query["limit"]), after=request.query.get("after"))
        items = [volume.model_dump(mode="json") for volume in page.items]
        return web.json_response({"volumes": items, "next_after": page.next_after})

    @routes.get(one)
    async def show(request: web.Request) -> web.Response:
        return _answer(await volumes.get(request.match_info["id"]))

    @routes.patch(one)
    async def change(request: web.Request) -> web.Response:
        patch, revision = VolumePatch.model_validate(read_foreign(await request.read())), int(request.query["revision"])
        return _answer(
            await volumes.change(request.match_info["id"], patch, if_revision=revision, wait_s=_wait_s(request))
        )

    @routes.delete(one)
    async def delete(request: web.Request) -> web.Response:
        given = request.query.get("revision")
        revision = None if given is None else int(given)
        return _answer(await volumes.delete(request.match_info["id"], if_revision=revision, wait_s=_wait_s(request)))

    @routes.put(f"{one}/uses")
    async def use(request: web.Request) -> web.Response:
        wanted = VolumeUse.model_validate(read_foreign(await request.read()))
        volume_id, reference = request.match_info["id"], request.query.get("reference", "")
        return _answer(await volumes.use(volume_id, reference, wanted, wait_s=_wait_s(request)))

    @routes.delete(f"{one}/uses")
    async def leave(request: web.Request) -> web.Response:
        volume_id, reference = request.match_info["id"], request.query.get("reference", "")
        is_gone = await volumes.leave(volume_id, reference, wait_s=_wait_s(request))
        return web.json_response({"is_gone": is_gone})

    return routes


def _wait_s(request: web.Request) -> float:
    return float(request.query.get("wait_s", 0.0))


def _answer(shown: MultiCloudType) -> web.Response:
    return web.json_response(shown.model_dump(mode="json"))
