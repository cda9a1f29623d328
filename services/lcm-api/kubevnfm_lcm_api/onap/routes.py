"""The routes of ONAP's paths. They are in no document of ours: ONAP describes them, and their errors are plain text."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubevnfm_lcm_api.onap import connectivity, vnf_instances
from kubevnfm_lcm_api.onap.plain import in_plain_text

MOUNTS: Final = ("/v1", "/api/multicloud-k8s/v1/v1")
"""The path of the plug-in, and that behind ONAP's bus."""


def add_to(app: web.Application) -> None:
    """Add the paths to an application that has the multi-cloud API."""
    for mount in MOUNTS:
        for method, path, handler in (*vnf_instances.routes(), *connectivity.routes()):
            app.router.add_route(method, f"{mount}{path}", in_plain_text(handler))
