"""The gateway's application: every route, and the middlewares around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from aiohttp import web
from kubevnfm_access.audit import audited
from kubevnfm_access.caller import PAGE
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import PROXIES, Handler, Proxies, admitted
from kubevnfm_access.sessions import Sessions
from kubevnfm_kit.health import Parts, health_handlers
from kubevnfm_kit.http import check_ids

from kubevnfm_lcm_api.gateway import models
from kubevnfm_lcm_api.gateway.openapi import routes as documents
from kubevnfm_lcm_api.gateway.versions import ANNOUNCED, Api, check_headers, headers_of_answers
from kubevnfm_lcm_api.http.bodies import BODY_LIMIT
from kubevnfm_lcm_api.http.context import CONTEXT, HttpContext, api_root
from kubevnfm_lcm_api.http.documents import DOCUMENTS
from kubevnfm_lcm_api.http.errors import errors_as_problems
from kubevnfm_lcm_api.http.routes import ROUTES, Answer, Route, add_routes

_OCCURRENCE: Final = re.compile(r"/vnf_lcm_op_occs/([^/]+)")


Subject = Callable[[web.Application], None]
"""Adds its routes, and the services behind them, to an application."""


def make_app(
    subjects: Iterable[Subject],
    context: HttpContext,
    parts: Parts,
    states: Mapping[str, object],
    *,
    gate: Gate,
    proxies: Proxies,
    sessions: Sessions | None = None,
) -> web.Application:
    """Return the application; ``parts`` and ``states`` are shown at ``/health/ready``."""
    app = web.Application(
        # From the outside in: the audit log, errors, the caller, ids, the Version of requests.
        middlewares=[
            audited(proxies, _audit_facts),
            errors_as_problems,
            admitted(gate, proxies, sessions),
            ids_checked,
            check_headers,
        ],
        client_max_size=BODY_LIMIT,
    )
    app.on_response_prepare.append(headers_of_answers)
    app[CONTEXT] = context
    app[PROXIES] = proxies
    app[ROUTES], app[DOCUMENTS] = {}, [documents.ROOT]
    for add_to in subjects:
        add_to(app)
    add_routes(app, _routes(parts, states))
    for document in app[DOCUMENTS]:
        add_routes(app, documents.routes(document))
    return app


@web.middleware
async def ids_checked(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 404 for an id that cannot exist, before any other part of the request is read."""
    check_ids(request)
    return await handler(request)


async def root(request: web.Request) -> web.Response:
    """GET /: the version list that Tacker's clients read; to a browser, the way to the web page."""
    # A browser asks for HTML, no client of Tacker does.
    if "text/html" in request.headers.get("Accept", ""):
        return web.Response(status=303, headers={"Location": f"{PAGE}/", "Vary": "Accept"})
    link = {"rel": "self", "href": f"{api_root(request)}/v1.0"}
    versions = [{"id": "v1.0", "status": "CURRENT", "links": [link]}]
    return web.json_response({"versions": versions}, headers={"Vary": "Accept"})


def _versions(prefix: str, *apis: Api) -> Handler:
    """Return the handler of an api_versions resource (SOL013 9.3)."""
    announced = [{"version": version, "isDeprecated": False} for api in apis for version in api.versions]

    async def handle(request: web.Request) -> web.Response:
        return web.json_response({"uriPrefix": prefix, "apiVersions": announced})

    return handle


def _routes(parts: Parts, states: Mapping[str, object]) -> Iterator[Route]:
    """Yield the routes that belong to no subject."""
    tag = documents.TAG
    served = {200: Answer("The versions", models.ServedVersions), 303: Answer("The way to the page, for browsers")}
    yield Route(tag, "GET", "/", root, "Versions of the VIM API", served)
    versions = {200: Answer("The versions", models.ApiVersionInformation)}
    for prefix, apis in ANNOUNCED.items():
        handler = _versions(prefix, *apis)
        yield Route(tag, "GET", f"{prefix}/api_versions", handler, "Versions that can be asked for", versions)
    live, readiness = health_handlers(parts, states)
    alive, is_ready, away = (
        Answer(text, models.Health) for text in ("It does", "It is, perhaps without some parts", "It is not")
    )
    yield Route(tag, "GET", "/health/live", live, "Whether the process lives", {200: alive})
    yield Route(tag, "GET", "/health/ready", readiness, "Whether it is ready to serve", {200: is_ready, 503: away})


def _audit_facts(request: web.Request, response: web.StreamResponse) -> Mapping[str, object]:
    """Return the operation occurrence that a request has created or acted on."""
    fits = _OCCURRENCE.search(response.headers.get("Location", "")) or _OCCURRENCE.search(request.path)
    return {"occurrence_id": fits[1] if fits else None}
