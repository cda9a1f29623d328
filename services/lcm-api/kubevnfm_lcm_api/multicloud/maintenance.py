"""``.../suspension``: maintenance of a cloud region or a VNF instance, during which nothing is changed there (multicloud.md MC-139)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_clients.multicloud.suspension import Suspension, SuspensionRequest
from kubevnfm_kit.errors import NotFound

from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route
from kubevnfm_lcm_api.multicloud.bodies import read
from kubevnfm_lcm_api.multicloud.services import PREFIX, services, vnfs

_INSTANCE: Final = f"{PREFIX}/vnf_instances/{{id}}/suspension"
_REGION: Final = f"{PREFIX}/cloud-regions/{{owner}}/{{region}}/suspension"


_WRONG: Final = {422: "The reason is not as expected"}


async def show(request: web.Request) -> web.Response:
    """GET vnf_instances/{id}/suspension: its own, or that of its region; 404 while there is none."""
    return _answer(await vnfs(request).suspensions.get(request.match_info["id"]))


async def suspend(request: web.Request) -> web.Response:
    """PUT vnf_instances/{id}/suspension: 200, or 409 while an operation runs."""
    wanted, suspensions = await read(request, SuspensionRequest), vnfs(request).suspensions
    suspension = await suspensions.suspend(request.match_info["id"], wanted.reason, by=request[CALLER].subject)
    return _answer(suspension)


async def resume(request: web.Request) -> web.Response:
    """DELETE vnf_instances/{id}/suspension: 204, or 404 if it is not suspended by itself."""
    await vnfs(request).suspensions.resume(request.match_info["id"])
    return web.Response(status=204)


async def show_of_region(request: web.Request) -> web.Response:
    """GET cloud-regions/{owner}/{region}/suspension: 404 while there is none."""
    owner, name = _key(request)
    region = await services(request).regions.get(owner, name)
    if region.suspended is None:
        raise NotFound(f"cloud region {region.id} is not suspended")
    return _answer(region.suspended)


async def suspend_region(request: web.Request) -> web.Response:
    """PUT cloud-regions/{owner}/{region}/suspension: 200; of operations that run there, each goes on to its end."""
    wanted, (owner, name) = await read(request, SuspensionRequest), _key(request)
    return _answer(await services(request).regions.suspend(owner, name, wanted, by=request[CALLER].subject))


async def resume_region(request: web.Request) -> web.Response:
    """DELETE cloud-regions/{owner}/{region}/suspension: 204, or 404 if there is none."""
    await services(request).regions.resume(*_key(request))
    return web.Response(status=204)


def suspension_tag(suspension: Suspension | None) -> tuple[str, ...]:
    """Return what a suspension adds to the entity tag of a resource that shows it."""
    return () if suspension is None else (suspension.model_dump_json(),)


def _key(request: web.Request) -> tuple[str, str]:
    return request.match_info["owner"], request.match_info["region"]


def _answer(suspension: Suspension) -> web.Response:
    return web.json_response(suspension.model_dump(mode="json"))


def routes() -> Iterator[Route]:
    """Yield the routes of suspensions."""
    busy = {**_WRONG, 409: "An operation runs on the instance, or it is no VNF of containers"}
    tag, shown = "VNF instances", {200: Answer("The suspension", Suspension)}
    begin = "Suspend a VNF instance, or give another reason"
    yield Route(tag, "GET", _INSTANCE, show, "Show the suspension of a VNF instance", shown)
    yield Route(tag, "PUT", _INSTANCE, suspend, begin, shown, SuspensionRequest, refusals=busy)
    yield Route(tag, "DELETE", _INSTANCE, resume, "Resume a VNF instance", DELETED)
    tag, shown = "Cloud regions", {200: Answer("The suspension", Suspension)}
    begin = "Suspend a region, or give another reason"
    yield Route(tag, "GET", _REGION, show_of_region, "Show the suspension of a region", shown)
    yield Route(tag, "PUT", _REGION, suspend_region, begin, shown, SuspensionRequest, refusals=_WRONG)
    yield Route(tag, "DELETE", _REGION, resume_region, "Resume a region", DELETED)
