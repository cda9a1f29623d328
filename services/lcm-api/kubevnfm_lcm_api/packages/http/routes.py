"""The routes of VNF packages."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.packages.http import content, external, internal, packages
from kubevnfm_lcm_api.packages.http.context import ADDRESSES, SERVICES, PackageServices


def add_to(app: web.Application, services: PackageServices) -> None:
    """Add the resources of VNF packages to an application."""
    app[SERVICES] = services
    of_versions = (
        route for at in ADDRESSES for route in (*packages.routes(at), *content.routes(at), *external.routes(at))
    )
    add_routes(app, [*of_versions, *internal.routes()])
