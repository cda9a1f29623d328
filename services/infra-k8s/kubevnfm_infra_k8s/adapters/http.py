"""The internal HTTP API of virtual links, volumes and the inventory, for the gateway and the steps of VNFs (libs/clients port VirtualLinks)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.multicloud.links import LinkRequest, ReferenceRequest, VirtualLink
from kubevnfm_clients.multicloud.networks import AttachRequest
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.internal import internal_app

from kubevnfm_infra_k8s.adapters.http_inventory import inventory_routes
from kubevnfm_infra_k8s.adapters.http_volumes import volume_routes
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory
from kubevnfm_infra_k8s.domain.links.owner import VirtualLinks
from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes


def internal_api(
    links: VirtualLinks, volumes: PersistentVolumes, inventory: StoredInventory, *, token: str
) -> web.Application:
    """Return the application; all its paths require the internal token."""
    return internal_app([*link_routes(links), *volume_routes(volumes), *inventory_routes(inventory)], token=token)


def link_routes(links: VirtualLinks) -> web.RouteTableDef:
    """Return the routes of links."""
    routes, many = web.RouteTableDef(), "/internal/v1/virtual-links"
    one, reference = f"{many}/{{id}}", f"{many}/{{id}}/references/{{reference}}"

    @routes.post(many)
    async def create(request: web.Request) -> web.Response:
        wanted = LinkRequest.model_validate(read_foreign(await request.read()))
        created = await links.create(wanted, wait_s=_wait_s(request))
        return web.json_response(created.model_dump(mode="json"), status=201 if created.is_new else 200)

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        filters = {name: value for name, value in request.query.items() if name not in {"limit", "after"}}
        page = await links.find(filters, limit=int(request.query["limit"]), after=request.query.get("after"))
        items = [link.model_dump(mode="json") for link in page.items]
        return web.json_response({"links": items, "next_after": page.next_after})

    @routes.get(one)
    async def show(request: web.Request) -> web.Response:
        return _answer(await links.get(request.match_info["id"], wait_s=_wait_s(request)))

    @routes.put(reference)
    async def hold(request: web.Request) -> web.Response:
        wanted = ReferenceRequest.model_validate(read_foreign(await request.read()))
        link_id, holder = request.match_info["id"], request.match_info["reference"]
        return _answer(await links.hold(link_id, holder, wanted.namespaces, wait_s=_wait_s(request)))

    @routes.post("/internal/v1/network-attachments")
    async def attach(request: web.Request) -> web.Response:
        asked = AttachRequest.model_validate(read_foreign(await request.read()))
        found = await links.attach(asked)
        return web.json_response({"networks": [each.model_dump(mode="json") for each in found]})

    @routes.delete(one)
    @routes.delete(reference)
    async def release(request: web.Request) -> web.Response:
        revision = request.query.get("revision")
        left = await links.release(
            request.match_info["id"],
            request.match_info.get("reference"),
            wait_s=_wait_s(request),
            if_revision=None if revision is None else int(revision),
        )
        return web.Response(status=204) if left is None else _answer(left)

    return routes


def _wait_s(request: web.Request) -> float:
    return float(request.query.get("wait_s", 0.0))


def _answer(link: VirtualLink) -> web.Response:
    return web.json_response(link.model_dump(mode="json"))
