"""``/multicloud/v1/group-operations``, and the POST that begins one (multicloud.md MC-140)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_kit.traces import callers_trace
from kubevnfm_secrets import listed_names
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_store.query import AllOf, Compare, Op, Query, by
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Route, page_of
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud import vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.group_checks import check_all, read_group
from kubevnfm_lcm_api.multicloud.group_record import COLLECTION, LARGE, GroupRecord, RegionEntry
from kubevnfm_lcm_api.multicloud.group_types import GroupOperation
from kubevnfm_lcm_api.multicloud.group_work import GroupWork, read, renewed
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.repeats import seed_of
from kubevnfm_lcm_api.multicloud.services import PREFIX, services, vnfs
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstanceRequest

GROUPS: Final = web.AppKey("multicloud-groups", GroupWork)
PARALLEL: Final = web.AppKey("multicloud-group-parallel", int)
_MANY: Final = f"{PREFIX}/group-operations"
_ONE: Final = f"{_MANY}/{{id}}"
_KEPT: Final = timedelta(days=30)


async def begin(request: web.Request, body: Mapping[str, Any]) -> web.Response:
    """POST vnf_instances with regions: 202 after all regions were checked."""
    seed, known = seed_of(request), context(request)
    group_id = new_id() if seed is None else derived_id("multicloud-group", seed)
    if await known.store.get(COLLECTION, group_id) is None:
        await _make(request, group_id, body)
    request.app[GROUPS].wake()
    return await _answer(request, group_id, status=202)


async def _make(request: web.Request, group_id: str, body: Mapping[str, Any]) -> None:
    on, regions, most = vnfs(request), services(request).regions, request.app[PARALLEL]
    group = await read_group(regions, body)
    # With any region, as the faults of the others are looked for with theirs.
    # In threads, here and below: a request may have megabytes.
    of_one = {**body, "cloud_region_id": group.regions[0].id, "regions": None}
    asked = await asyncio.to_thread(parsed, VnfInstanceRequest, of_one)
    if asked.artifacts is not None or asked.csar_id is None:
        raise Unprocessable("artifacts", "csar_id of a package that is held expected beside regions")
    parallel = most if asked.parallel is None else asked.parallel
    if parallel > most:
        raise Unprocessable("parallel", f"1 to {most} expected")
    known, now = context(request), context(request).clock.now()
    stored = await asyncio.to_thread(group.hidden, await _secret_names(on, asked.csar_id, body))
    record = GroupRecord(
        id=group_id,
        created_at=rfc3339(now),
        expires_at=rfc3339(now + _KEPT),
        by=request[CALLER].subject,
        traceparent=str(callers_trace() or ""),
        request_id=present_request_id(),
        parallel=parallel,
        stop_after_failures=asked.stop_after_failures or 0,
        regions=tuple(RegionEntry(cloud_region_id=each.id) for each in group.regions),
        request=dict(stored.request),
        values_by_region=dict(stored.values),
    )
    vnf_ids = {each.cloud_region_id: each.vnf_id(group_id) for each in record.regions}
    await check_all(on, regions, group, asked, vnf_ids, record.by)
    try:
        await known.store.insert(COLLECTION, group_id, await asyncio.to_thread(record.stored, known.ring))
    except AlreadyExists:  # by another run of the same request
        return


async def _secret_names(on: RequestServices, csar_id: str, body: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of secrets that the request lists, and those that its package marks. Raises Unprocessable."""
    package = await vnf_requests.package_of(on, csar_id)
    vnfd = await on.packages.vnfd(package.package_id, package.checksum)
    return (await asyncio.to_thread(listed_names, body)).union(vnfd.secret_names)


async def list_all(request: web.Request) -> web.Response:
    """GET group-operations: a page of them, by id."""
    asked = read_page(request, ())
    behind = None if asked.after is None else (None, asked.after)
    query = Query(after=behind, limit=asked.limit + 1, exclude=LARGE)
    found = [GroupRecord.from_stored(each) for each in await context(request).store.find(COLLECTION, query)]
    shown, root = found[: asked.limit], api_root(request)
    page = Page(shown, shown[-1].id if len(found) > asked.limit else None)
    return page_answer(request, asked, page, lambda each: each.view(root).model_dump(mode="json", exclude_none=True))


async def show(request: web.Request) -> web.Response:
    """GET group-operations/{id}."""
    return await _answer(request, request.match_info["id"])


async def cancel(request: web.Request) -> web.Response:
    """POST group-operations/{id}/cancel: no further region is started; running ones end."""

    def cancelled(record: GroupRecord) -> Mapping[str, Any]:
        if not record.is_open:
            raise Conflict(f"group operation {record.id} is {record.status}: one that is RUNNING expected")
        return record.cancelled().moves()

    await _change(context(request).store, request.match_info["id"], cancelled)
    return await _answer(request, request.match_info["id"])


async def retry(request: web.Request) -> web.Response:
    """POST group-operations/{id}/retry: the failed regions again, and those that were not started."""

    def retried(record: GroupRecord) -> Mapping[str, Any]:
        after = record.retried()
        if record.is_open or not after.is_open:
            expected = "one that has ended, with regions that are FAILED or NOT_STARTED, expected"
            raise Conflict(f"group operation {record.id} is {record.status}: {expected}")
        return {**renewed(after), "requestId": present_request_id()}

    await _change(context(request).store, request.match_info["id"], retried)
    request.app[GROUPS].wake()
    return await _answer(request, request.match_info["id"], status=202)


async def remove_old(store: DocumentStore, clock: Clock) -> None:
    """Remove group operations that have ended and expired."""
    old = Compare("expiresAt", Op.LT, [rfc3339(clock.now())])
    await store.delete_many(COLLECTION, AllOf([old, by(isOpen=False)]))


@repeat_lost_writes
async def _change(store: DocumentStore, group_id: str, moved: Callable[[GroupRecord], Mapping[str, Any]]) -> None:
    record = await _read(store, group_id)
    await store.update(COLLECTION, group_id, dict(moved(record)), if_revision=record.revision)


async def _read(store: DocumentStore, group_id: str) -> GroupRecord:
    record = await read(store, group_id)
    if record is None:
        raise NotFound(f"group operation {group_id} does not exist")
    return record


async def _answer(request: web.Request, group_id: str, *, status: int = 200) -> web.Response:
    root = api_root(request)
    shown = (await _read(context(request).store, group_id)).view(root).model_dump(mode="json", exclude_none=True)
    headers = {"Location": f"{root}{_MANY}/{group_id}"} if status == 202 else {}
    return web.json_response(shown, status=status, headers=headers)


def routes() -> Iterator[Route]:
    """Yield the routes of group operations."""
    tag = "Group operations"
    shown = {200: Answer("The group operation", GroupOperation)}
    begun = {202: Answer("It goes on", GroupOperation, has_location=True)}
    ended = {409: "It has ended"}
    open_yet = {409: "It runs, or no region has failed or was not started"}
    page = page_of(GroupOperation)
    yield Route(tag, "GET", _MANY, list_all, "List group operations", page, query=PARAMETERS)
    yield Route(tag, "GET", _ONE, show, "Show a group operation", shown)
    yield Route(tag, "POST", f"{_ONE}/cancel", cancel, "Start no further region", shown, refusals=ended)
    yield Route(tag, "POST", f"{_ONE}/retry", retry, "Try failed regions again", begun, refusals=open_yet)
