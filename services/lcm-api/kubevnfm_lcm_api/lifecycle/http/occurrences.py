"""``/vnflcm/{v1,v2}/vnf_lcm_op_occs`` and their tasks (SOL003 clauses 5.4.12 to 5.4.17)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aiohttp import web
from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.lcm import CancelMode, VnfLcmOpOcc

from kubevnfm_lcm_api.http.bodies import parse_body, read_json
from kubevnfm_lcm_api.http.conditions import answer, entity_tag
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.listing import PARAMETERS, list_page
from kubevnfm_lcm_api.http.routes import Answer, Route, page_of
from kubevnfm_lcm_api.lifecycle.containers.finalizers import removing_finalizers, retried_with
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.http.context import ACCEPTED, accepted, api_version, services
from kubevnfm_lcm_api.lifecycle.http.render import occurrence_view
from kubevnfm_lcm_api.lifecycle.http.shapes import OCCURRENCES

_TAG: Final = "Operation occurrences"
_REFUSALS: Final = {404: "No such occurrence, or this operation has not got it", 409: "Not in a state for it"}


async def list_all(request: web.Request) -> web.StreamResponse:
    version, root = api_version(request), api_root(request)

    def view(document: JsonMapping) -> JsonObject:
        return occurrence_view(document, version, root)

    return await list_page(request, occurrences.COLLECTION, OCCURRENCES[version], view)


async def show(request: web.Request) -> web.Response:
    occurrence_id = request.match_info["id"]
    stored = await context(request).store.get(occurrences.COLLECTION, occurrence_id)
    if stored is None or stored.body["internal"]["isInternal"]:
        raise NotFound(f"VNF LCM operation occurrence {occurrence_id} does not exist")
    version = api_version(request)
    view = occurrence_view(stored.body, version, api_root(request))
    return answer(request, view, entity_tag(version, stored), view["stateEnteredTime"])


async def retry(request: web.Request) -> web.Response:
    """POST .../retry: 202. SOL003 has no body; ours may ask to remove finalizers (capi.md CR-109)."""
    await services(request).requests.suspensions.check_occurrence(request.match_info["id"])
    force = retried_with(await read_json(request, is_required=False))
    await services(request).engine.retry(request.match_info["id"], change=removing_finalizers if force else None)
    return accepted(request, request.match_info["id"])


async def rollback(request: web.Request) -> web.Response:
    await services(request).requests.suspensions.check_occurrence(request.match_info["id"])
    await services(request).engine.rollback(request.match_info["id"])
    return accepted(request, request.match_info["id"])


async def fail(request: web.Request) -> web.Response:
    record = await services(request).engine.fail(request.match_info["id"])
    document = record.document(context(request).ring)
    return web.json_response(occurrence_view(document, api_version(request), api_root(request)))


async def cancel(request: web.Request) -> web.Response:
    mode = await parse_body(request, CancelMode, await read_json(request))
    await services(request).engine.cancel(request.match_info["id"], mode.cancel_mode)
    return accepted(request, request.match_info["id"])


def routes(version: ApiVersion) -> list[Route]:
    """Return the routes of one API version."""
    base, one = f"/vnflcm/{version}/vnf_lcm_op_occs", f"/vnflcm/{version}/vnf_lcm_op_occs/{{id}}"
    shown = {200: Answer("The occurrence", VnfLcmOpOcc, has_etag=True)}
    failed = {200: Answer("The occurrence, FAILED", VnfLcmOpOcc)}
    retry_summary = "Retry a failed operation; a termination also with additionalParams.capi.force_remove_finalizers"
    give_up = Route(_TAG, "POST", f"{one}/fail", fail, "Give a failed operation up", failed, refusals=_REFUSALS)
    return [
        Route(_TAG, "GET", base, list_all, "List operation occurrences", page_of(VnfLcmOpOcc), query=PARAMETERS),
        Route(_TAG, "GET", one, show, "Show an operation occurrence", shown),
        Route(_TAG, "POST", f"{one}/cancel", cancel, "Cancel an operation", ACCEPTED, CancelMode, refusals=_REFUSALS),
        Route(_TAG, "POST", f"{one}/retry", retry, retry_summary, ACCEPTED, refusals=_REFUSALS),
        Route(_TAG, "POST", f"{one}/rollback", rollback, "Roll a failed operation back", ACCEPTED, refusals=_REFUSALS),
        replace(give_up, checks_accept=False),
    ]
