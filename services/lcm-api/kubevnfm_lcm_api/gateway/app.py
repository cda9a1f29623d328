"""The gateway's application: every route, and the middlewares around them."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import PROXIES, Proxies, admitted
from kubevnfm_kit.http import Ready, add_health

from kubevnfm_lcm_api.gateway import (
    deliveries,
    events,
    instances,
    internal,
    occurrences,
    operations,
    package_content,
    packages,
    subscriptions,
    tasks,
    vims,
)
from kubevnfm_lcm_api.gateway.audit import audited
from kubevnfm_lcm_api.gateway.bodies import BODY_LIMIT, check_accept, check_query
from kubevnfm_lcm_api.gateway.context import GATEWAY, Gateway, api_root
from kubevnfm_lcm_api.gateway.errors import errors_as_problems
from kubevnfm_lcm_api.gateway.openapi import routes as documents
from kubevnfm_lcm_api.gateway.versions import PACKAGES, V1, V2, Api, check_headers, version_in_answers


def make_app(services: Gateway, ready: Ready, *, gate: Gate, proxies: Proxies) -> web.Application:
    """Return the application. Middlewares from the outside: Version in answers, audit, errors, who calls, headers."""
    app = web.Application(
        middlewares=[version_in_answers, audited(proxies), errors_as_problems, admitted(gate, proxies), check_headers],
        client_max_size=BODY_LIMIT,
    )
    app[GATEWAY] = services
    app[PROXIES] = proxies
    app.on_shutdown.append(events.end_streams)
    app.add_routes([web.get("/", root), web.get("/vnflcm/api_versions", _versions("/vnflcm", V1, V2))])
    for api in (V1, V2, PACKAGES):
        app.add_routes([web.get(f"{api.prefix}/api_versions", _versions(api.prefix, api))])
    for version in ("v1", "v2"):
        app.add_routes([*instances.routes(version), *occurrences.routes(version), *tasks.routes(version)])
    app.add_routes(
        [*packages.routes(), *package_content.routes(), *vims.routes(), *operations.routes(), *internal.routes()]
    )
    app.add_routes([*subscriptions.routes(), *events.routes(), *deliveries.routes()])
    app[documents.DOCUMENTS] = documents.Documents()
    app.add_routes(documents.routes())
    add_health(app, ready)
    return app


async def root(request: web.Request) -> web.Response:
    """GET /: the version list that Tacker's clients look at."""
    link = {"rel": "self", "href": f"{api_root(request)}/v1.0"}
    return web.json_response({"versions": [{"id": "v1.0", "status": "CURRENT", "links": [link]}]})


def _versions(prefix: str, *apis: Api) -> Any:
    """Return the handler of an api_versions resource (SOL013 9.3)."""
    announced = [{"version": version, "isDeprecated": False} for api in apis for version in api.versions]

    async def handle(request: web.Request) -> web.Response:
        check_accept(request, "application/json")
        check_query(request)
        return web.json_response({"uriPrefix": prefix, "apiVersions": announced})

    return handle
