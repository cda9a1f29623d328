"""The routes of ``/multicloud/v1``."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.http.documents import DOCUMENTS
from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.multicloud import links, regions, volumes
from kubevnfm_lcm_api.multicloud.repeats import once_for_a_key
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, SERVICES, MultiCloudServices


def add_to(app: web.Application, services: MultiCloudServices) -> None:
    """Add the multi-cloud API to an application."""
    app[SERVICES] = services
    app[DOCUMENTS].append(DOCUMENT)
    add_routes(app, map(once_for_a_key, [*regions.routes(), *links.routes(), *volumes.routes()]))
