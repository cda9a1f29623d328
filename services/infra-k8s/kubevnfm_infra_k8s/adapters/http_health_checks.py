"""The internal HTTP API of health checks, for the gateway (libs/clients port HealthChecks)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.multicloud.health_checks import HealthChecks

from kubevnfm_infra_k8s.adapters.internal_http import answer


def health_check_routes(checks: HealthChecks) -> web.RouteTableDef:
    """Return the routes of health checks."""
    routes, many = web.RouteTableDef(), "/internal/v1/vnf-instances/{instance}/health-checks"
    one = f"{many}/{{id}}"

    @routes.post(many)
    async def create(request: web.Request) -> web.Response:
        return answer(await checks.create(request.match_info["instance"]), status=201)

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        found = await checks.find(request.match_info["instance"])
        return web.json_response({"health_checks": [each.model_dump(mode="json") for each in found]})

    @routes.get(one)
    async def show(request: web.Request) -> web.Response:
        return answer(await checks.get(request.match_info["instance"], request.match_info["id"]))

    @routes.delete(one)
    async def delete(request: web.Request) -> web.Response:
        await checks.delete(request.match_info["instance"], request.match_info["id"])
        return web.Response(status=204)

    return routes
