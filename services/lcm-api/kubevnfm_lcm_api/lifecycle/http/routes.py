"""The routes of VNF instances and operations."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.lifecycle.http import instances, internal, occurrences, operations, tasks
from kubevnfm_lcm_api.lifecycle.http.context import SERVICES, LifecycleServices


def add_to(app: web.Application, services: LifecycleServices) -> None:
    """Add the resources of the life cycle to an application, those of SOL003 in both API versions."""
    app[SERVICES] = services
    for version in ("v1", "v2"):
        app.add_routes([*instances.routes(version), *occurrences.routes(version), *tasks.routes(version)])
    app.add_routes([*operations.routes(), *internal.routes()])
