"""The routes of ONAP's paths, with a document of their own; their errors are plain text (multicloud.md MC-133)."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from kubevnfm_lcm_api.http.documents import DOCUMENTS
from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.onap import (
    bundles,
    connectivity,
    health_checks,
    instance_status,
    instances,
    networks,
    subscriptions,
    vnf_instances,
)
from kubevnfm_lcm_api.onap.answers import DOCUMENT
from kubevnfm_lcm_api.onap.bundle_store import Bundles


def add_to(app: web.Application, stored_bundles: Bundles) -> None:
    """Add the paths to an application that has the multi-cloud API; ``stored_bundles``: the definitions and profiles."""
    app[bundles.BUNDLES] = stored_bundles
    app[DOCUMENTS].append(DOCUMENT)
    described = (
        *vnf_instances.routes(),
        *connectivity.routes(),
        *bundles.routes(),
        *instances.routes(),
        *instance_status.routes(),
        *subscriptions.routes(),
        *health_checks.routes(),
        *networks.routes(),
    )
    # The media type that a client asks for is not looked at, as with ONAP.
    add_routes(app, (replace(route, checks_accept=False) for route in described))
