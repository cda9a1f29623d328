"""The internal HTTP API of the inventory, for the gateway (libs/clients port Inventory)."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_infra_k8s.adapters.internal_http import answer, filters, limits, page
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory


def inventory_routes(inventory: StoredInventory) -> web.RouteTableDef:
    """Return the routes of the inventory."""
    routes = web.RouteTableDef()

    @routes.get("/internal/v1/inventory/resources")
    async def find(request: web.Request) -> web.Response:
        limit, after = limits(request)
        found = await inventory.find(filters(request), limit=limit, after=after)
        return page("resources", found.items, found.next_after)

    @routes.get("/internal/v1/inventory/health")
    async def health(_: web.Request) -> web.Response:
        return answer(await inventory.health())

    @routes.get("/internal/v1/inventory/watches")
    async def watches(request: web.Request) -> web.Response:
        return answer(await inventory.watches(request.query.get("vim_id")))

    @routes.get("/internal/v1/inventory/watches/{vim_id}")
    async def watch_of(request: web.Request) -> web.Response:
        return answer(await inventory.watch_of(request.match_info["vim_id"]))

    @routes.post("/internal/v1/inventory/resync")
    async def resync(_: web.Request) -> web.Response:
        return answer(await inventory.resync(), status=202)

    return routes
