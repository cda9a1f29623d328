"""The internal HTTP API of virtual links, volumes and the inventory, for the gateway and the steps of VNFs (libs/clients port VirtualLinks)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.charts import ChartPrograms
from kubevnfm_clients.multicloud.dry_runs import DryRuns
from kubevnfm_clients.multicloud.health_checks import HealthChecks
from kubevnfm_clients.multicloud.links import LinkRequest, ReferenceRequest
from kubevnfm_clients.multicloud.networks import AttachRequest
from kubevnfm_clients.multicloud.types import revision_of
from kubevnfm_clients.multicloud.verdicts import Verdicts
from kubevnfm_clients.pod_usages import PodUsages
from kubevnfm_kit.internal import internal_app

from kubevnfm_infra_k8s.adapters.http_charts import chart_routes
from kubevnfm_infra_k8s.adapters.http_dry_runs import dry_run_routes
from kubevnfm_infra_k8s.adapters.http_health_checks import health_check_routes
from kubevnfm_infra_k8s.adapters.http_inventory import inventory_routes
from kubevnfm_infra_k8s.adapters.http_resource_metrics import resource_metrics_routes
from kubevnfm_infra_k8s.adapters.http_verdicts import verdict_routes
from kubevnfm_infra_k8s.adapters.http_volumes import volume_routes
from kubevnfm_infra_k8s.adapters.internal_http import answer, body, filters, limits, page, wait_s
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory
from kubevnfm_infra_k8s.domain.links.owner import VirtualLinks
from kubevnfm_infra_k8s.domain.links.types import spec_schemas
from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes


def internal_api(
    links: VirtualLinks,
    volumes: PersistentVolumes,
    inventory: StoredInventory,
    dry_runs: DryRuns,
    verdicts: Verdicts,
    charts: ChartPrograms,
    health_checks: HealthChecks,
    usages: PodUsages,
    *,
    token: str,
) -> web.Application:
    """Return the application; all its paths require the internal token."""
    of_objects = [*inventory_routes(inventory), *dry_run_routes(dry_runs), *verdict_routes(verdicts)]
    of_objects += [*chart_routes(charts), *health_check_routes(health_checks)]
    of_objects += resource_metrics_routes(usages)
    routes = [*link_routes(links), *volume_routes(volumes), *of_objects]
    return internal_app(routes, token=token)


def link_routes(links: VirtualLinks) -> web.RouteTableDef:
    """Return the routes of links."""
    routes, many = web.RouteTableDef(), "/internal/v1/virtual-links"
    one, reference = f"{many}/{{id}}", f"{many}/{{id}}/references/{{reference}}"

    @routes.post(many)
    async def create(request: web.Request) -> web.Response:
        created = await links.create(await body(request, LinkRequest), wait_s=wait_s(request))
        return answer(created, status=201 if created.is_new else 200)

    @routes.get(many)
    async def find(request: web.Request) -> web.Response:
        limit, after = limits(request)
        found = await links.find(filters(request), limit=limit, after=after)
        return page("links", found.items, found.next_after)

    @routes.get(one)
    async def show(request: web.Request) -> web.Response:
        return answer(await links.get(request.match_info["id"], wait_s=wait_s(request)))

    @routes.get("/internal/v1/virtual-link-specs")
    async def specs(_: web.Request) -> web.Response:
        return answer(spec_schemas())

    @routes.put(reference)
    async def hold(request: web.Request) -> web.Response:
        wanted = await body(request, ReferenceRequest)
        link_id, holder = request.match_info["id"], request.match_info["reference"]
        return answer(await links.hold(link_id, holder, wanted.namespaces, wait_s=wait_s(request)))

    @routes.post("/internal/v1/network-attachments")
    async def attach(request: web.Request) -> web.Response:
        found = await links.attach(await body(request, AttachRequest))
        return web.json_response({"networks": [each.model_dump(mode="json") for each in found]})

    @routes.delete(one)
    @routes.delete(reference)
    async def release(request: web.Request) -> web.Response:
        link_id, holder = request.match_info["id"], request.match_info.get("reference")
        left = await links.release(link_id, holder, wait_s=wait_s(request), if_revision=revision_of(request.query))
        return web.Response(status=204) if left is None else answer(left)

    return routes
