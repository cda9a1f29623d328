"""Access to the artifacts outside of a package (SOL005 clause 9.4.4a)."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from kubevnfm_sol.packages import ExternalArtifactsAccessConfig

from kubevnfm_lcm_api.http.bodies import parse_body, read_json
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.packages.external import shown
from kubevnfm_lcm_api.packages.http.content import check_addresses
from kubevnfm_lcm_api.packages.http.context import TAGS, Addresses, services


async def show(request: web.Request) -> web.Response:
    stored = await services(request).catalogue.get(request.match_info["id"])
    return web.json_response(shown(stored.body))


async def configure(request: web.Request) -> web.Response:
    """PUT .../ext_artifacts_access: 200; 202 if the package has content, whose artifacts are now fetched."""
    document = await read_json(request)
    given = document.get("artifact") if isinstance(document, Mapping) else None
    for index, one in enumerate(given if isinstance(given, list) else [given]):
        place = f"artifact[{index}]/" if isinstance(given, list) else "artifact/"
        check_addresses(one, ("artifactUri", "overrideUri"), place)
    config = await parse_body(request, ExternalArtifactsAccessConfig, document)
    found = await services(request).onboarding.configure_external(request.match_info["id"], config)
    return web.Response(status=202) if found is None else web.json_response(found)


def routes(at: Addresses) -> list[Route]:
    """Return the routes below a package."""
    tag, path = TAGS[0], f"{at.of_one[0]}/ext_artifacts_access"
    stored = {200: Answer("The configuration, without credentials", ExternalArtifactsAccessConfig)}
    again = {**stored, 202: Answer("Accepted; the artifacts of the content are fetched with it")}
    busy = {409: "The package is neither CREATED nor ERROR"}
    read, write = "Show the access to external artifacts", "Configure the access to external artifacts"
    body = ExternalArtifactsAccessConfig
    return [
        Route(tag, "GET", path, show, read, stored),
        Route(tag, "PUT", path, configure, write, again, body, refusals=busy),
    ]
