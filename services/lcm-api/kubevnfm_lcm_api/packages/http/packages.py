"""``/vnfpkgm/{v1,v2}/vnf_packages`` (SOL005 clause 9, the read side of SOL003 clause 10; api.md chapter 7).

``/vnfpkgm/{v1,v2}/onboarded_vnf_packages`` reads the same packages by the ids of their VNFDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.packages import (
    CreateVnfPkgInfoRequest,
    VnfPkgInfo,
    VnfPkgInfoModificationRequest,
    VnfPkgInfoModifications,
)
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import PATCH, parse_body, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.listing import PARAMETERS, list_page
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route, page_of
from kubevnfm_lcm_api.http.secret_free import without_secret_leaves
from kubevnfm_lcm_api.packages import catalogue as packages
from kubevnfm_lcm_api.packages.domain.facts import files_as_shown
from kubevnfm_lcm_api.packages.http.context import (
    FOR_TACKERS_CLIENT,
    TAGS,
    Addresses,
    addresses,
    is_by_vnfd,
    package_of,
    services,
)
from kubevnfm_lcm_api.packages.http.shapes import EVERY_PACKAGE, ONBOARDED_PACKAGES
from kubevnfm_lcm_api.packages.usable import COLLECTION

_OURS = ("createdAt", "updatedAt", "internal")
_ALSO_LOWER_CASE = ("onboardingFailureDetails", "packageSecurityOption", "vnfmInfo")
"""python-tackerclient prints attributes that it does not know only if the names are in lower case (api.md 7.3)."""


async def view(request: web.Request, document: JsonMapping) -> JsonObject:
    """Return VnfPkgInfo, its links at the address of the request; usageState is computed from the instances."""
    # Not the stored state: events update it, so it may be late.
    usage = packages.usage_state(await services(request).catalogue.is_in_use(document))
    at = addresses(request)
    path = (
        f"{at.onboarded}/{quote(document['vnfdId'], safe='')}"
        if is_by_vnfd(request)
        else f"{at.packages}/{document['id']}"
    )
    me = f"{api_root(request)}{path}"
    below = {"packageContent": "/package_content", "vnfd": "/vnfd"}
    links = {"self": {"href": me}, **{name: {"href": f"{me}{end}"} for name, end in below.items()}}
    public = {name: value for name, value in document.items() if name not in _OURS}
    shown = without_secret_leaves({**public, **files_as_shown(document)})
    if not shown.get("userDefinedData"):
        shown.pop("userDefinedData", None)
    if at is not FOR_TACKERS_CLIENT:
        # V2.6.1 requires the attribute, V3.7.1 wants it absent.
        for image in shown.get("softwareImages", ()):
            if not image["imagePath"]:
                del image["imagePath"]
    return {**shown, "usageState": usage, "_links": links}


def _tag(stored: Stored, usage_state: str) -> str:
    # The usage can change before the document does, and the answer with it.
    return entity_tag("packages", stored, usage_state)


async def create(request: web.Request) -> web.Response:
    body = await read_json(request, is_required=False)
    user_data = body.get("userDefinedData", {}) if isinstance(body, Mapping) else None
    if not isinstance(user_data, Mapping):
        raise InvalidInput("userDefinedData", "an object expected")
    document = await services(request).catalogue.create(user_data)
    shown = await view(request, document)
    return web.json_response(shown, status=201, headers={"Location": shown["_links"]["self"]["href"]})


async def list_all(request: web.Request) -> web.StreamResponse:
    listed = ONBOARDED_PACKAGES if is_by_vnfd(request) else EVERY_PACKAGE

    async def shown(document: JsonMapping) -> JsonObject:
        return await view(request, document)

    return await list_page(request, COLLECTION, listed, shown)


async def show(request: web.Request) -> web.Response:
    stored = await package_of(request)
    shown = await view(request, stored.body)
    if addresses(request) is FOR_TACKERS_CLIENT:
        shown |= {name.lower(): shown[name] for name in _ALSO_LOWER_CASE if name in shown}
    return answer(request, shown, _tag(stored, shown["usageState"]), stored.body["updatedAt"])


async def modify(request: web.Request) -> web.Response:
    body = await read_json(request, PATCH)
    await parse_body(request, VnfPkgInfoModificationRequest, body)

    async def as_seen(stored: Stored) -> None:
        usage = packages.usage_state(await services(request).catalogue.is_in_use(stored.body))
        check_unchanged(request, _tag(stored, usage), stored.body["updatedAt"])

    changed = await services(request).catalogue.modify(request.match_info["id"], body, check=as_seen)
    return web.json_response(without_secret_leaves(changed))


async def delete(request: web.Request) -> web.Response:
    await services(request).catalogue.delete(request.match_info["id"])
    return web.Response(status=204)


def routes(at: Addresses) -> list[Route]:
    """Return the routes of package management in one version."""
    (of_id, of_vnfd), (one, one_of_vnfd) = TAGS, at.of_one
    made = {201: Answer("Made; CREATED, without content", VnfPkgInfo, has_location=True)}
    shown = {200: Answer("The package", VnfPkgInfo, has_etag=True)}
    changed = {200: Answer("What was changed", VnfPkgInfoModifications)}
    unchangeable = {409: "It is so already, or the package is not ONBOARDED"}
    busy = {409: "ENABLED, IN_USE, UPLOADING or PROCESSING"}
    create_summary = "Create a VNF package resource"
    creation = Route(of_id, "POST", at.packages, create, create_summary, made, CreateVnfPkgInfoRequest)
    modify_summary = "Enable, disable, or change the user-defined data of a VNF package"
    change = Route(of_id, "PATCH", one, modify, modify_summary, changed, VnfPkgInfoModificationRequest, PATCH)
    pages = page_of(VnfPkgInfo)
    return [
        replace(creation, is_body_required=False),
        Route(of_id, "GET", at.packages, list_all, "List VNF packages", pages, query=PARAMETERS),
        Route(of_vnfd, "GET", at.onboarded, list_all, "List the onboarded VNF packages", pages, query=PARAMETERS),
        Route(of_id, "GET", one, show, "Show a VNF package", shown),
        Route(of_vnfd, "GET", one_of_vnfd, show, "Show the VNF package of a VNFD", shown),
        replace(change, conditions=True, refusals=unchangeable),
        Route(of_id, "DELETE", one, delete, "Delete a VNF package", DELETED, refusals=busy),
    ]
