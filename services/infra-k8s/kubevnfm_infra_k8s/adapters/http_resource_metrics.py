"""The internal HTTP API of the usage of pods, for performance management (libs/clients port PodUsages)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.pod_usages import PodsInUse, PodUsages

from kubevnfm_infra_k8s.adapters.internal_http import body


def resource_metrics_routes(usages: PodUsages) -> web.RouteTableDef:
    """Return the route of the usage of pods."""
    routes = web.RouteTableDef()

    # POST, because the question may have access data of a VIM.
    @routes.post("/internal/v1/resource-metrics")
    async def read(request: web.Request) -> web.Response:
        found = await usages.read(await body(request, PodsInUse))
        return web.json_response({"pods": [each.model_dump(mode="json") for each in found]})

    return routes
