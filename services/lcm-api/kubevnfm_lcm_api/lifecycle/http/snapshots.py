"""``/vnflcm/v2/vnf_snapshots`` (SOL003 clauses 5.4.23 to 5.4.25)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.snapshots import (
    CreateVnfSnapshotInfoRequest,
    VnfSnapshotInfo,
    VnfSnapshotInfoModificationRequest,
    VnfSnapshotInfoModifications,
)
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import PATCH, parse_body, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.listing import PARAMETERS, list_page
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route, page_of
from kubevnfm_lcm_api.lifecycle.core.snapshot import COLLECTION, SnapshotRecord
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.lifecycle.http.render import snapshot_view
from kubevnfm_lcm_api.lifecycle.http.shapes import SNAPSHOTS

_TAG: Final = "VNF snapshots"
_BASE: Final = "/vnflcm/v2/vnf_snapshots"
_ONE: Final = f"{_BASE}/{{id}}"


def _tag(stored: Stored) -> str:
    return entity_tag("snapshots", stored)


async def create(request: web.Request) -> web.Response:
    wanted = await parse_body(request, CreateVnfSnapshotInfoRequest, await read_json(request, is_required=False))
    stored = await services(request).requests.snapshots.create(wanted)
    shown = snapshot_view(stored.body, api_root(request))
    return web.json_response(shown, status=201, headers={"Location": shown["_links"]["self"]["href"]})


async def list_all(request: web.Request) -> web.StreamResponse:
    root = api_root(request)

    def view(document: JsonMapping) -> JsonObject:
        return snapshot_view(document, root)

    return await list_page(request, COLLECTION, SNAPSHOTS, view)


async def show(request: web.Request) -> web.Response:
    stored = await services(request).requests.snapshots.get(request.match_info["id"])
    return answer(request, snapshot_view(stored.body, api_root(request)), _tag(stored), stored.body["updatedAt"])


async def modify(request: web.Request) -> web.Response:
    body = await read_json(request, PATCH)
    for name, value in body.items() if isinstance(body, dict) else ():
        if value is None:
            raise InvalidInput(name, "null is not permitted")
    wanted = await parse_body(request, VnfSnapshotInfoModificationRequest, body)

    def as_seen(stored: Stored) -> None:
        check_unchanged(request, _tag(stored), stored.body["updatedAt"])

    changed = await services(request).requests.snapshots.modify(request.match_info["id"], wanted, check=as_seen)
    shown = snapshot_view(changed.document(context(request).ring), api_root(request))
    return web.json_response({name: shown[name] for name in body if name in shown})


async def delete(request: web.Request) -> web.Response:
    def as_seen(stored: Stored) -> None:
        check_unchanged(request, _tag(stored), stored.body["updatedAt"])

    await services(request).requests.snapshots.delete(request.match_info["id"], check=as_seen)
    return web.Response(status=204)


async def show_state(request: web.Request) -> web.Response:
    """GET .../vnf_state_snapshot: no VNF of this VNFM has VNF-specific state in addition to its machines and volumes."""
    stored = await services(request).requests.snapshots.get(request.match_info["id"])
    record = SnapshotRecord.from_document(stored.body)
    if record.info.vnf_snapshot is None or (record.internals.created_by is not None and not record.is_complete):
        raise Conflict(f"VNF snapshot {stored.id} holds no complete snapshot")
    raise NotFound(f"VNF snapshot {stored.id} has no VNF state snapshot: its machines and volumes are all that it has")


def routes() -> list[Route]:
    """Return the routes; version 1 of the API has none of them."""
    made = {201: Answer("Made; empty, unless a VNF snapshot package is described", VnfSnapshotInfo, has_location=True)}
    shown = {200: Answer("The VNF snapshot", VnfSnapshotInfo, has_etag=True)}
    changed = {200: Answer("What was changed", VnfSnapshotInfoModifications)}
    state = {200: Answer("The VNF state snapshot", media_types=("application/octet-stream",))}
    unusable = {422: "vnfStateSnapshotInfo is not supported"}
    in_use = {409: "An operation uses it"}
    busy = {409: "It holds a snapshot, or an operation uses it", **unusable}
    incomplete = {404: "No such VNF snapshot, or it has no VNF state snapshot", 409: "The snapshot is not complete"}
    creation = Route(
        _TAG,
        "POST",
        _BASE,
        create,
        "Create a VNF snapshot resource",
        made,
        CreateVnfSnapshotInfoRequest,
        refusals=unusable,
    )
    change = Route(
        _TAG, "PATCH", _ONE, modify, "Modify an empty VNF snapshot resource", changed, VnfSnapshotInfoModificationRequest,
        PATCH,
    )  # fmt: skip
    summary, path = "Read a VNF state snapshot", f"{_ONE}/vnf_state_snapshot"
    return [
        replace(creation, is_body_required=False),
        Route(_TAG, "GET", _BASE, list_all, "List VNF snapshots", page_of(VnfSnapshotInfo), query=PARAMETERS),
        Route(_TAG, "GET", _ONE, show, "Show a VNF snapshot", shown),
        replace(change, conditions=True, refusals=busy),
        Route(_TAG, "DELETE", _ONE, delete, "Delete a VNF snapshot", DELETED, conditions=True, refusals=in_use),
        replace(Route(_TAG, "GET", path, show_state, summary, state, refusals=incomplete), checks_accept=False),
    ]
