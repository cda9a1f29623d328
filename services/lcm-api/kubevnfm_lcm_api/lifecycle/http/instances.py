"""``/vnflcm/{v1,v2}/vnf_instances`` (SOL003 clauses 5.4.2 and 5.4.3)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_events import ApiVersion
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.lcm import CreateVnfRequest, VnfInstance
from kubevnfm_sol.vim import OPENSTACK
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import parse_body, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.listing import PARAMETERS, list_page
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route, page_of
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core.suspension import KEY
from kubevnfm_lcm_api.lifecycle.http.context import api_version, services
from kubevnfm_lcm_api.lifecycle.http.dry_runs import ANSWER, PARAMETER, foreseen, is_dry_run
from kubevnfm_lcm_api.lifecycle.http.render import instance_view
from kubevnfm_lcm_api.lifecycle.http.shapes import INSTANCES

_TAG = "VNF instances"


async def create(request: web.Request) -> web.Response:
    wanted = await parse_body(request, CreateVnfRequest, await read_json(request))
    if is_dry_run(request):
        await services(request).instances.check_new(wanted)
        return foreseen(request)
    stored = await services(request).instances.create(wanted)
    view = instance_view(stored.body, api_version(request), api_root(request))
    return web.json_response(view, status=201, headers={"Location": view["_links"]["self"]["href"]})


async def list_all(request: web.Request) -> web.StreamResponse:
    version, root = api_version(request), api_root(request)

    async def view(document: JsonMapping) -> JsonObject:
        return _with_suspension(instance_view(document, version, root), await _suspension(request, document))

    return await list_page(request, instances.COLLECTION, INSTANCES[version], view)


async def show(request: web.Request) -> web.Response:
    version = api_version(request)
    stored = await services(request).instances.get(request.match_info["id"])
    suspension = await _suspension(request, stored.body)
    view = _with_suspension(instance_view(stored.body, version, api_root(request)), suspension)
    # No tag: that of its region changes without a write of the instance.
    if suspension is not None and suspension.scope == "region":
        return web.json_response(view)
    return answer(request, view, entity_tag(version, stored), stored.body["updatedAt"])


async def delete(request: web.Request) -> web.Response:
    def as_seen(stored: Stored) -> None:
        check_unchanged(request, entity_tag(api_version(request), stored), stored.body["updatedAt"])

    # The remains of a failed instantiation are deleted with it.
    await services(request).requests.suspensions.check_instance(request.match_info["id"])
    await services(request).instances.delete(request.match_info["id"], check=as_seen)
    return web.Response(status=204)


async def _suspension(request: web.Request, document: JsonMapping) -> Suspension | None:
    # Lists do not read the internals. An OpenStack is no cloud region.
    connections = (document.get("vimConnectionInfo") or {}).values()
    vim_ids = [str(each["vimId"]) for each in connections if each.get("vimId") and each.get("vimType") != OPENSTACK]
    return await services(request).requests.suspensions.shown(document.get("metadata") or {}, vim_ids)


def _with_suspension(view: JsonObject, suspension: Suspension | None) -> JsonObject:
    if suspension is not None:
        view["metadata"] = {**view.get("metadata", {}), KEY: suspension.model_dump(mode="json")}
    return view


def routes(version: ApiVersion) -> list[Route]:
    """Return the routes of one API version."""
    base, one = f"/vnflcm/{version}/vnf_instances", f"/vnflcm/{version}/vnf_instances/{{id}}"
    made = {200: ANSWER, 201: Answer("Made; NOT_INSTANTIATED", VnfInstance, has_location=True)}
    unusable = {422: "The package of vnfdId is missing, or not ENABLED"}
    shown = {200: Answer("The instance", VnfInstance, has_etag=True)}
    in_use = {409: "INSTANTIATED, or busy"}
    return [
        Route(
            _TAG,
            "POST",
            base,
            create,
            "Create a VNF instance",
            made,
            CreateVnfRequest,
            query=(PARAMETER,),
            refusals=unusable,
        ),
        Route(_TAG, "GET", base, list_all, "List VNF instances", page_of(VnfInstance), query=PARAMETERS),
        Route(_TAG, "GET", one, show, "Show a VNF instance", shown),
        Route(_TAG, "DELETE", one, delete, "Delete a VNF instance", DELETED, conditions=True, refusals=in_use),
    ]
