"""``/vnflcm/{v1,v2}/vnf_lcm_op_occs`` and their tasks (SOL003 clauses 5.4.12 to 5.4.17)."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.lcm import CancelMode

from kubevnfm_lcm_api.http.bodies import check_accept, check_query, parse, read_json
from kubevnfm_lcm_api.http.conditions import answer, entity_tag
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.listing import list_page
from kubevnfm_lcm_api.lifecycle.domain import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.http.context import accepted, api_version, services
from kubevnfm_lcm_api.lifecycle.http.render import base_url, occurrence_view
from kubevnfm_lcm_api.lifecycle.http.shapes import OCCURRENCES
from kubevnfm_lcm_api.lifecycle.requests.finalizers import removing_finalizers, retried_with


async def list_all(request: web.Request) -> web.StreamResponse:
    """GET vnf_lcm_op_occs: a page, filtered."""
    check_accept(request, "application/json")
    version, root = api_version(request), api_root(request)

    def view(document: JsonMapping) -> JsonObject:
        return occurrence_view(document, version, root)

    return await list_page(request, occurrences.COLLECTION, OCCURRENCES[version], view)


async def show(request: web.Request) -> web.Response:
    """GET vnf_lcm_op_occs/{id}: 200 with ETag, or 304."""
    check_query(request)
    check_accept(request, "application/json")
    occurrence_id = request.match_info["id"]
    stored = await context(request).store.get(occurrences.COLLECTION, occurrence_id)
    if stored is None or stored.body["internal"]["isInternal"]:
        raise NotFound(f"VNF LCM operation occurrence {occurrence_id} does not exist")
    version = api_version(request)
    view = occurrence_view(stored.body, version, api_root(request))
    return answer(request, view, entity_tag(version, stored), view["stateEnteredTime"])


async def retry(request: web.Request) -> web.Response:
    """POST .../retry: 202. SOL003 has no body; ours may ask to remove finalizers (capi.md CR-109)."""
    check_query(request)
    force = retried_with(await read_json(request, is_required=False))
    await services(request).engine.retry(request.match_info["id"], change=removing_finalizers if force else None)
    return accepted(_me(request))


async def rollback(request: web.Request) -> web.Response:
    """POST .../rollback: 202."""
    check_query(request)
    await services(request).engine.rollback(request.match_info["id"])
    return accepted(_me(request))


async def fail(request: web.Request) -> web.Response:
    """POST .../fail: 200 with the FAILED occurrence."""
    check_query(request)
    record = await services(request).engine.fail(request.match_info["id"])
    document = record.document(context(request).ring)
    return web.json_response(occurrence_view(document, api_version(request), api_root(request)))


async def cancel(request: web.Request) -> web.Response:
    """POST .../cancel: 202."""
    check_query(request)
    mode = parse(CancelMode, await read_json(request))
    await services(request).engine.cancel(request.match_info["id"], mode.cancel_mode)
    return accepted(_me(request))


def _me(request: web.Request) -> str:
    return f"{base_url(api_version(request), api_root(request))}/vnf_lcm_op_occs/{request.match_info['id']}"


def routes(version: str) -> list[web.RouteDef]:
    """Return the routes of one API version."""
    base = f"/vnflcm/{version}/vnf_lcm_op_occs"
    return [
        web.get(base, list_all),
        web.get(f"{base}/{{id}}", show),
        web.post(f"{base}/{{id}}/cancel", cancel),
        web.post(f"{base}/{{id}}/retry", retry),
        web.post(f"{base}/{{id}}/rollback", rollback),
        web.post(f"{base}/{{id}}/fail", fail),
    ]
