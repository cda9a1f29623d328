"""The routes of ``/multicloud/v1``."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.http.documents import DOCUMENTS
from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud import inventory, links, maintenance, regions, vnf_instances, vnf_revisions, volumes
from kubevnfm_lcm_api.multicloud.repeats import once_for_a_key
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, SERVICES, VNFS, MultiCloudServices


def add_to(app: web.Application, services: MultiCloudServices, vnfs: RequestServices) -> None:
    """Add the multi-cloud API to an application; ``vnfs``: what operations of VNFs are accepted with."""
    app[SERVICES], app[VNFS] = services, vnfs
    app[DOCUMENTS].append(DOCUMENT)
    described = [
        *vnf_instances.routes(),
        *vnf_revisions.routes(),
        *maintenance.routes(),
        *regions.routes(),
        *links.routes(),
        *volumes.routes(),
        *inventory.routes(),
    ]
    add_routes(app, map(once_for_a_key, described))
