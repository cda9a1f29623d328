"""The routes of VNF instances and operations."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_events import ApiVersion

from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.lifecycle.http import instances, internal, occurrences, snapshots, tasks
from kubevnfm_lcm_api.lifecycle.http.context import SERVICES, LifecycleServices


def add_to(app: web.Application, services: LifecycleServices) -> None:
    """Add the resources of the life cycle to an application, those of SOL003 in both API versions."""
    app[SERVICES] = services
    versions: tuple[ApiVersion, ...] = ("v1", "v2")
    for version in versions:
        add_routes(app, [*instances.routes(version), *occurrences.routes(version), *tasks.routes(version)])
    add_routes(app, [*snapshots.routes(), *internal.routes()])
