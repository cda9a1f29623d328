"""``/v1/vnf_instances``, the API of the plug-in that document 003 describes (multicloud.md MC-129)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.multicloud import vnf_removal, vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.services import ends, services, vnfs
from kubevnfm_lcm_api.multicloud.taken_places import place_check
from kubevnfm_lcm_api.multicloud.vnf_lists import find
from kubevnfm_lcm_api.multicloud.vnf_reading import vnf_in_path
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstance, VnfInstanceRequest, check_single
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf
from kubevnfm_lcm_api.onap.answers import AWAY, FAILED, NO_BODY, NOT_THERE, PREFER, SEVERAL, WRONG, VnfIds
from kubevnfm_lcm_api.onap.plain import read_plain, region_named

_PAGE: Final = 1000
_ELSEWHERE: Final = ("artifacts", "clone_of", "regions")
"""Members of requests that ONAP does not have: their answer is another one, or they need another role."""


async def create(request: web.Request) -> web.Response:
    """POST vnf_instances: 201, or 500 once its operation has failed. At the end of the wait it is 201 too: ONAP has no other answer."""
    body = await read_plain(request, ("values",))
    given = body.get("cloud_region_id")
    if not isinstance(given, str) or not given or "csar_id" not in body:
        raise Unprocessable("cloud_region_id" if "csar_id" in body else "csar_id", "required")
    for name in _ELSEWHERE:
        if body.get(name) is not None:
            raise Unprocessable(name, "not known to ONAP: use /multicloud/v1/vnf_instances")
    region = await region_named(request, given)
    asked = {**body, "cloud_region_id": region.id}
    wanted = parsed(VnfInstanceRequest, asked)
    check_single(wanted)
    on, regions = vnfs(request), services(request).regions
    origin = Origin(request[CALLER].subject, "create")
    places = place_check(services(request).dry_runs)
    made, operation_id = await vnf_requests.accept(
        on, regions, wanted, asked, origin, check_places=places, instance_id=None
    )
    await ends(request).ended(operation_id, read_preference(request).wait_s)
    vnf = await vnf_in_path(request, made.vnf.id)
    if vnf.status == "FAILED":
        # It stays, for a retry or its deletion; ONAP has no answer for that.
        return web.Response(status=500, text=f"VNF {made.vnf.id} was not brought up: {vnf.detail}\n")
    return web.json_response(_shown(request, vnf, given), status=201)


async def list_ids(request: web.Request) -> web.Response:
    """GET vnf_instances/{region}/{namespace}: 200, or 404 if there is none."""
    region = await region_named(request, request.match_info["region"])
    filters = {"cloud_region_id": region.id, "namespace": request.match_info["namespace"]}
    ids: list[str] = []
    after: str | None = None
    while True:
        page = await find(context(request).store, services(request).regions, filters, limit=_PAGE, after=after)
        ids += [vnf.record.vnf.id for vnf in page.items]
        after = page.next_after
        if after is None:
            break
    if not ids:
        raise NotFound(f"no VNF in namespace {filters['namespace']} of cloud region {region.id}")
    return web.json_response({"vnf_id_list": ids})


async def show(request: web.Request) -> web.Response:
    """GET vnf_instances/{region}/{namespace}/{id}: 200."""
    return web.json_response(_shown(request, await _vnf(request), request.match_info["region"]))


async def delete(request: web.Request) -> web.Response:
    """DELETE vnf_instances/{region}/{namespace}/{id}: 202."""
    vnf = await _vnf(request)
    on, regions = vnfs(request), services(request).regions
    await vnf_removal.accept(on, regions, vnf, is_orphaning=False, check=_any)
    return web.Response(status=202)


def _any(_: Stored) -> None:
    """Accept an instance in every state: ONAP has no conditional requests."""


async def _vnf(request: web.Request) -> Vnf:
    """Return the VNF of the path. Raises NotFound, also for one of another region or namespace."""
    region, vnf = await region_named(request, request.match_info["region"]), await vnf_in_path(request)
    place = vnf.record.internals.multicloud
    if place is None or (place.cloud_region_id, place.namespace) != (region.id, request.match_info["namespace"]):
        raise NotFound(f"VNF {vnf.record.vnf.id} is not in this namespace of cloud region {region.id}")
    return vnf


def _shown(request: web.Request, vnf: Vnf, region: str) -> Mapping[str, Any]:
    """Return ONAP's members and ours; the region is named as the caller has named it."""
    return {**vnf.view(api_root(request)), "cloud_region_id": region}


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag, many = "VNF instances", "/v1/vnf_instances"
    here, one = f"{many}/{{region}}/{{namespace}}", f"{many}/{{region}}/{{namespace}}/{{id}}"
    yield Route(
        tag, "POST", many, create, "Bring a VNF up", {201: Answer("The VNF", VnfInstance)}, VnfInstanceRequest,
        headers=(PREFER,), refusals={**NO_BODY, **NOT_THERE, **SEVERAL, **WRONG, **FAILED, **AWAY}, also=f"{many}/",
    )  # fmt: skip
    ids = {200: Answer("The ids of its VNFs; without any it is 404", VnfIds)}
    yield Route(tag, "GET", here, list_ids, "List the VNFs of a namespace", ids, refusals=SEVERAL)
    yield Route(tag, "GET", one, show, "Show a VNF", {200: Answer("The VNF", VnfInstance)}, refusals=SEVERAL)
    busy = {409: f"{SEVERAL[409]}; or another operation runs"}
    yield Route(
        tag, "DELETE", one, delete, "Bring a VNF down", {202: Answer("It is being brought down")}, refusals=busy
    )
