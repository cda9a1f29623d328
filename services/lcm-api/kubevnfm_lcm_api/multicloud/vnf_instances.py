"""``/multicloud/v1/vnf_instances``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, get_args

from aiohttp import web
from kubevnfm_access.caller import Role
from kubevnfm_access.errors import Forbidden
from kubevnfm_access.middleware import CALLER
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.query import Query, Sort, by

from kubevnfm_lcm_api.http.bodies import PATCH, read_json
from kubevnfm_lcm_api.http.conditions import answer
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, page_of
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.http.context import repeated
from kubevnfm_lcm_api.multicloud import dry_runs, group_operations, vnf_removal, vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.flags import TRUTH, read_flag
from kubevnfm_lcm_api.multicloud.group_types import BegunVnf
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.repeats import seed_of
from kubevnfm_lcm_api.multicloud.services import PREFIX, ends, services, vnfs
from kubevnfm_lcm_api.multicloud.taken_places import place_check
from kubevnfm_lcm_api.multicloud.vnf_clones import completed
from kubevnfm_lcm_api.multicloud.vnf_lists import find
from kubevnfm_lcm_api.multicloud.vnf_live import seen
from kubevnfm_lcm_api.multicloud.vnf_reading import as_seen, unchanged_vnf, vnf_in_path
from kubevnfm_lcm_api.multicloud.vnf_types import (
    LeftBehind,
    VnfInstance,
    VnfInstancePatch,
    VnfInstanceRequest,
    VnfResource,
    VnfStatus,
    check_single,
)
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf

_MANY: Final = f"{PREFIX}/vnf_instances"
_ONE: Final = f"{_MANY}/{{id}}"
_GONE: Final = (OperationState.COMPLETED, OperationState.ROLLED_BACK)
_LIVE: Final = Parameter("live", "Whether each object is read in the region", values=TRUTH)
_ORPHAN: Final = Parameter("orphan", "Whether what is in a region that does not answer is given up", values=TRUTH)
_FORCE: Final = Parameter(
    "force", "Whether objects that finalizers hold are left there after a short wait", values=TRUTH
)
_FILTERS: Final = (
    Parameter("cloud_region_id", "The id, or the name of the region alone"),
    Parameter("namespace", "Equal to this"),
    Parameter("status", "Equal to this", values=get_args(VnfStatus)),
    Parameter("vnf_instance_name", "Equal to this"),
    Parameter("group_operation", "The id of the group operation that has brought it up"),
)


async def bring_up(request: web.Request) -> web.Response:
    """POST vnf_instances: 201 once its operation has ended or waits FAILED_TEMP, 202 if it runs on."""
    body = await read_json(request, secrets_in=("values",))
    body = await completed(vnfs(request), context(request).store, body)
    mode = dry_runs.mode_of(request)
    if isinstance(body, Mapping) and body.get("regions") is not None:
        # Readers may ask for a dry run, and a group has none.
        if mode is not None:
            raise InvalidInput("dry_run", "not expected with regions: name one cloud_region_id")
        return await group_operations.begin(request, body)
    # In a thread: values may have megabytes.
    wanted = await asyncio.to_thread(parsed, VnfInstanceRequest, body)
    check_single(wanted)
    # An operator makes VNFs of the packages that an admin has chosen; a catalogue is an admin's choice too.
    if wanted.artifacts is not None and not request[CALLER].may(Role.ADMIN):
        raise Forbidden(f"artifacts needs the role {Role.ADMIN}: name a package of the catalogue by csar_id")
    if mode is not None:
        own_id, order = await vnf_requests.order_of_new(vnfs(request), services(request).regions, wanted, body)
        return await dry_runs.report(request, mode, order, own_id, "create")
    preference, seed = read_preference(request), seed_of(request)
    vnf_id = None if seed is None else derived_id("multicloud-vnf", seed)
    operation_id = await _begun_before(request, vnf_id)
    if operation_id is None:
        on, regions = vnfs(request), services(request).regions
        origin = Origin(request[CALLER].subject, "create")
        places = place_check(services(request).dry_runs)
        made, operation_id = await vnf_requests.accept(
            on, regions, wanted, body, origin, check_places=places, instance_id=vnf_id
        )
        vnf_id = made.vnf.id
    state = await ends(request).ended(operation_id, preference.wait_s)
    vnf = await vnf_in_path(request, vnf_id)
    root = api_root(request)
    headers = {**preference.headers, "Location": f"{root}{_MANY}/{vnf_id}", "ETag": vnf.tag}
    status = 202 if state is None else 201
    return web.json_response(vnf.view(root, operation_id), status=status, headers=headers)


async def _begun_before(request: web.Request, vnf_id: str | None) -> str | None:
    """Return the operation of a VNF that a run of the same request has brought up before a crash; None if none has."""
    stored = None if vnf_id is None else await context(request).store.get(instances.COLLECTION, vnf_id)
    if stored is None:
        return None
    query = Query(by(vnfInstanceId=stored.id), sort=Sort("startTime"), limit=1)
    found = await context(request).store.find(occurrences.COLLECTION, query)
    # Without the occurrence, the process ended between the two writes of its acceptance: it will be stored.
    current = InstanceRecord.from_document(stored.body).internals.current_operation
    return found[0].id if found else current


async def list_all(request: web.Request) -> web.Response:
    """GET vnf_instances: a page of them, by id."""
    asked = read_page(request, _FILTERS)
    store, regions = context(request).store, services(request).regions
    page = await find(store, regions, asked.filters, limit=asked.limit, after=asked.after)
    root = api_root(request)
    return page_answer(request, asked, page, lambda vnf: vnf.view(root))


async def show(request: web.Request) -> web.Response:
    """GET vnf_instances/{id}: 200 with ETag, or 304; with ``live``, each object is read in the region.

    No tag while its region is suspended: that changes without a write of the instance.
    """
    vnf = await vnf_in_path(request)
    record = vnf.record
    suspension = await vnfs(request).suspensions.shown(record.vnf.metadata, record.internals.vim_ids)
    view = vnf.view(api_root(request), suspended=suspension)
    if not read_flag(request, _LIVE):
        if suspension is not None and suspension.scope == "region":
            return web.json_response(view)
        return answer(request, view, vnf.tag, vnf.record.updated_at)
    # No tag: another answer for each state of the region.
    return web.json_response({**view, "resources": await _resources(request, vnf)})


async def resources(request: web.Request) -> web.Response:
    """GET vnf_instances/{id}/resources: its objects; with ``live``, as the region has them now."""
    return web.json_response(await _resources(request, await vnf_in_path(request)))


@repeated
async def change(request: web.Request) -> web.Response:
    """PATCH vnf_instances/{id}: 200 once its operation has ended or waits FAILED_TEMP, 202 if it runs on."""
    body = await read_json(request, PATCH, secrets_in=("values",))
    wanted = parsed(VnfInstancePatch, body)
    preference, vnf = read_preference(request), await unchanged_vnf(request)
    if (mode := dry_runs.mode_of(request)) is not None:
        order = await vnf_requests.order_of_patch(vnfs(request), services(request).regions, vnf, wanted, body)
        return await dry_runs.report(request, mode, order, vnf.record.vnf.id, "update")
    on, origin = vnfs(request), Origin(request[CALLER].subject, "patch")
    places = place_check(services(request).dry_runs)
    check, known = as_seen(request), partial(vnfs(request).revisions.is_newest, ring=context(request).ring)
    operation_id = await vnf_requests.change(
        on,
        services(request).regions,
        vnf,
        wanted,
        body,
        origin=origin,
        check=check,
        check_places=places,
        is_known=known,
    )
    state = None if operation_id is None else await ends(request).ended(operation_id, preference.wait_s)
    vnf = await vnf_in_path(request)
    headers = {**preference.headers, "ETag": vnf.tag}
    status = 202 if operation_id is not None and state is None else 200
    return web.json_response(vnf.view(api_root(request), operation_id), status=status, headers=headers)


@repeated
async def bring_down(request: web.Request) -> web.Response:
    """DELETE vnf_instances/{id}: 204 once it is gone, 202 if it is not in time; 200 with what is given up."""
    preference, vnf, is_orphaning = read_preference(request), await unchanged_vnf(request), read_flag(request, _ORPHAN)
    is_forced = read_flag(request, _FORCE)
    if is_forced and is_orphaning:
        raise InvalidInput("force", "not expected beside orphan: leave one of them out")
    on, regions = vnfs(request), services(request).regions
    operation_id = await vnf_removal.accept(
        on, regions, vnf, is_orphaning=is_orphaning, is_forced=is_forced, check=as_seen(request)
    )
    state = None
    if operation_id is not None:
        state = await ends(request).ended(operation_id, preference.wait_s)
    if operation_id is None or state in _GONE:
        left = await _left(request, vnf, operation_id)
        return left or web.Response(status=204, headers=preference.headers)
    vnf = await vnf_in_path(request)
    headers = {**preference.headers, "Location": f"{api_root(request)}{request.path}", "ETag": vnf.tag}
    return web.json_response(vnf.view(api_root(request), operation_id), status=202, headers=headers)


async def _left(request: web.Request, vnf: Vnf, operation_id: str | None) -> web.Response | None:
    """Return the answer with the objects that an operation has given up; None if it has given up none."""
    stored = None if operation_id is None else await context(request).store.get(occurrences.COLLECTION, operation_id)
    left = () if stored is None else OccurrenceRecord.from_document(stored.body).draft.get("left") or ()
    if not left:
        return None
    shown = LeftBehind(vnf_id=vnf.record.vnf.id, left=tuple(left))
    return web.json_response(shown.model_dump(mode="json", exclude_none=True))


async def _resources(request: web.Request, vnf: Vnf) -> list[JsonObject]:
    found, place = vnf.resources, vnf.record.internals.multicloud
    if read_flag(request, _LIVE) and place is not None:
        found = await seen(services(request).regions, place, found)
    return [each.model_dump(mode="json", exclude_none=True) for each in found]


def routes() -> Iterator[Route]:
    """Yield the routes of VNFs."""
    tag = "VNF instances"
    ended_so = "Its operation has ended: status says how"
    made = {
        201: Answer(ended_so, VnfInstance, has_location=True, has_etag=True),
        202: Answer(
            "Not finished in time; or a group operation, without ETag", BegunVnf, has_location=True, has_etag=True
        ),
    }
    shown = {200: Answer("The VNF; the answer about live objects has no ETag", VnfInstance, has_etag=True)}
    changed = {
        200: Answer(ended_so, dry_runs.VnfOrDryRun, has_etag=True),
        202: Answer("Not finished in time", VnfInstance, has_etag=True),
    }
    gone = {
        204: Answer("It is gone"),
        200: Answer("It is gone; these objects may still be in the region", LeftBehind),
        202: Answer("Not gone yet", VnfInstance, has_location=True, has_etag=True),
    }
    objects = {200: Answer("Its objects", VnfResource, is_list=True)}
    wrong = {422: "An attribute is not as expected, or does not fit the package or the region"}
    away = {503: "The region does not answer"}
    busy = {409: "Another operation runs, or waits FAILED_TEMP"}
    page, query = page_of(VnfInstance), (*_FILTERS, *PARAMETERS)
    yield Route(
        tag,
        "POST",
        _MANY,
        bring_up,
        "Bring a VNF up",
        {200: dry_runs.ANSWER, **made},
        VnfInstanceRequest,
        query=(dry_runs.PARAMETER,),
        refusals={**wrong, **away},
    )
    yield Route(tag, "GET", _MANY, list_all, "List VNFs", page, query=query)
    yield Route(tag, "GET", _ONE, show, "Show a VNF", shown, query=(_LIVE,), refusals=away)
    refused = {**wrong, **busy}
    yield Route(
        tag,
        "PATCH",
        _ONE,
        change,
        "Change a VNF",
        changed,
        VnfInstancePatch,
        PATCH,
        query=(dry_runs.PARAMETER,),
        conditions=True,
        refusals={**refused, **away},
    )
    down = "Bring a VNF down"
    yield Route(
        tag, "DELETE", _ONE, bring_down, down, gone, query=(_ORPHAN, _FORCE), conditions=True, refusals={**busy, **away}
    )
    yield Route(tag, "GET", f"{_ONE}/resources", resources, "List its objects", objects, query=(_LIVE,), refusals=away)
