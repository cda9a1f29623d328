"""The internal HTTP API of the inventory, for the gateway (libs/clients port Inventory)."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_infra_k8s.adapters.internal_http import filters, limits, page
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory


def inventory_routes(inventory: StoredInventory) -> web.RouteTableDef:
    """Return the routes of the inventory."""
    routes = web.RouteTableDef()

    @routes.get("/internal/v1/inventory/resources")
    async def find(request: web.Request) -> web.Response:
        limit, after = limits(request)
        found = await inventory.find(filters(request), limit=limit, after=after)
        return page("resources", found.items, found.next_after)

    return routes
