"""``/vnflcm/{v1,v2}/vnf_instances`` and their tasks (SOL003 clauses 5.4.2 to 5.4.9)."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.lcm import CreateVnfRequest, InstantiateVnfRequest, TerminateVnfRequest
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import check_accept, check_query, parse, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.listing import list_page
from kubevnfm_lcm_api.lifecycle.domain import instance as instances
from kubevnfm_lcm_api.lifecycle.http.context import accepted, api_version, repeated, services
from kubevnfm_lcm_api.lifecycle.http.render import INSTANTIATE_FORM, base_url, instance_view, long_types
from kubevnfm_lcm_api.lifecycle.http.shapes import INSTANCES


async def create(request: web.Request) -> web.Response:
    """POST vnf_instances: 201 with the instance."""
    check_query(request)
    check_accept(request, "application/json")
    wanted = parse(CreateVnfRequest, await read_json(request))
    stored = await services(request).instances.create(wanted)
    view = instance_view(stored.body, api_version(request), api_root(request))
    return web.json_response(view, status=201, headers={"Location": view["_links"]["self"]["href"]})


async def list_all(request: web.Request) -> web.StreamResponse:
    """GET vnf_instances: a page, filtered."""
    check_accept(request, "application/json")
    version, root = api_version(request), api_root(request)

    def view(document: JsonMapping) -> JsonObject:
        return instance_view(document, version, root)

    return await list_page(request, instances.COLLECTION, INSTANCES[version], view)


async def show(request: web.Request) -> web.Response:
    """GET vnf_instances/{id}: 200 with ETag, or 304."""
    check_query(request)
    check_accept(request, "application/json")
    version = api_version(request)
    stored = await services(request).instances.get(request.match_info["id"])
    view = instance_view(stored.body, version, api_root(request))
    return answer(request, view, entity_tag(version, stored), stored.body["updatedAt"])


async def delete(request: web.Request) -> web.Response:
    """DELETE vnf_instances/{id}: 204, or 412 when it is not as the caller has seen it."""
    check_query(request)

    def as_seen(stored: Stored) -> None:
        check_unchanged(request, entity_tag(api_version(request), stored), stored.body["updatedAt"])

    await services(request).instances.delete(request.match_info["id"], check=as_seen)
    return web.Response(status=204)


async def instantiate(request: web.Request) -> web.Response:
    """POST .../instantiate: 202 with the occurrence's Location."""
    check_query(request)
    version = api_version(request)
    original = await read_json(request)
    document = INSTANTIATE_FORM[version](original) if isinstance(original, Mapping) else original
    if isinstance(document, dict) and isinstance(document.get("vimConnectionInfo"), dict):
        document["vimConnectionInfo"] = long_types(document["vimConnectionInfo"])
    wanted = parse(InstantiateVnfRequest, document)
    occurrence = await services(request).instantiate.accept(request.match_info["id"], wanted, original, version)
    return _accepted(request, occurrence)


async def terminate(request: web.Request) -> web.Response:
    """POST .../terminate: 202 with the occurrence's Location."""
    check_query(request)
    original = await read_json(request)
    wanted = parse(TerminateVnfRequest, original)
    occurrence = await services(request).terminate.accept(
        request.match_info["id"], wanted, original, api_version(request)
    )
    return _accepted(request, occurrence)


def _accepted(request: web.Request, occurrence_id: str) -> web.Response:
    return accepted(f"{base_url(api_version(request), api_root(request))}/vnf_lcm_op_occs/{occurrence_id}")


def routes(version: str) -> list[web.RouteDef]:
    """Return the routes of one API version."""
    base = f"/vnflcm/{version}/vnf_instances"
    return [
        web.post(base, create),
        web.get(base, list_all),
        web.get(f"{base}/{{id}}", show),
        web.delete(f"{base}/{{id}}", delete),
        web.post(f"{base}/{{id}}/instantiate", repeated(instantiate)),
        web.post(f"{base}/{{id}}/terminate", repeated(terminate)),
    ]
