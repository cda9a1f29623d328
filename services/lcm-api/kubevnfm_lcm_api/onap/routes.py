"""The routes of ONAP's paths. They are in no document of ours: ONAP describes them, and their errors are plain text."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubevnfm_lcm_api.onap import (
    bundles,
    connectivity,
    instance_status,
    instances,
    networks,
    subscriptions,
    vnf_instances,
)
from kubevnfm_lcm_api.onap.bundle_store import Bundles
from kubevnfm_lcm_api.onap.plain import in_plain_text

MOUNTS: Final = ("/v1", "/api/multicloud-k8s/v1/v1")
"""The path of the plug-in, and that behind ONAP's bus."""
_OF_NCM: Final = ("/v2", "/api/multicloud-k8s/v1/v2")


def add_to(app: web.Application, stored_bundles: Bundles) -> None:
    """Add the paths to an application that has the multi-cloud API; ``stored_bundles``: the definitions and profiles."""
    app[bundles.BUNDLES] = stored_bundles
    for mount in MOUNTS:
        for method, path, handler in (*vnf_instances.routes(), *connectivity.routes(), *bundles.routes()):
            app.router.add_route(method, f"{mount}{path}", in_plain_text(handler))
        for method, path, handler, parameters in (
            *instances.routes(),
            *instance_status.routes(),
            *subscriptions.routes(),
        ):
            app.router.add_route(method, f"{mount}{path}", in_plain_text(handler, parameters))
    for mount in _OF_NCM:
        for method, path, handler in networks.routes():
            app.router.add_route(method, f"{mount}{path}", in_plain_text(handler))
