"""The internal HTTP API of the inventory, for the gateway (libs/clients port Inventory)."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory


def inventory_routes(inventory: StoredInventory) -> web.RouteTableDef:
    """Return the routes of the inventory."""
    routes = web.RouteTableDef()

    @routes.get("/internal/v1/inventory/resources")
    async def find(request: web.Request) -> web.Response:
        filters = {name: value for name, value in request.query.items() if name not in {"limit", "after"}}
        page = await inventory.find(filters, limit=int(request.query["limit"]), after=request.query.get("after"))
        items = [each.model_dump(mode="json") for each in page.items]
        return web.json_response({"resources": items, "next_after": page.next_after})

    return routes
