"""``/multicloud/v1/persistent-volumes``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.volumes import PersistentVolume, RemovedVolume, VolumePatch, VolumeRequest
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.bodies import PATCH
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag, seen_revision
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, page_of
from kubevnfm_lcm_api.multicloud.bodies import read
from kubevnfm_lcm_api.multicloud.maintenance import suspension_tag
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.services import PREFIX, services

_MANY: Final = f"{PREFIX}/persistent-volumes"
_ONE: Final = f"{_MANY}/{{id}}"
_VARIANT: Final = "persistent-volumes"
_FILTERS: Final = (
    Parameter("cloud_region_id", "Equal to this"),
    Parameter("name", "Equal to this"),
    Parameter("namespace", "A VNF in this namespace uses it"),
    Parameter("status", "The phase", values=("Pending", "Reserved", "Bound", "Released", "Failed")),
)


async def create(request: web.Request) -> web.Response:
    """POST persistent-volumes: 201 for a new one, 200 for the one of this name and spec; 202 while the work goes on."""
    wait, wanted = read_preference(request), await read(request, VolumeRequest)
    created = await services(request).volumes.create(wanted, wait_s=wait.wait_s)
    volume = created.volume
    headers = {"ETag": _tag(volume), **wait.headers}
    status = 200 if not created.is_new else 201
    if created.is_new or not volume.is_decided:
        headers["Location"] = f"{api_root(request)}{_MANY}/{volume.id}"
    return web.json_response(_shown(volume), status=status if volume.is_decided else 202, headers=headers)


async def list_all(request: web.Request) -> web.Response:
    """GET persistent-volumes: a page of them, by id."""
    asked = read_page(request, _FILTERS)
    page = await services(request).volumes.find(asked.filters, limit=asked.limit, after=asked.after)
    return page_answer(request, asked, page, _shown)


async def show(request: web.Request) -> web.Response:
    """GET persistent-volumes/{id}: 200 with ETag, or 304. The phase is that of the region at this moment."""
    volume = await _volume(request)
    return answer(request, _shown(volume), _tag(volume))


async def change(request: web.Request) -> web.Response:
    """PATCH persistent-volumes/{id}: 200, 202 while the work goes on, or 412 if it is not as the caller has seen it."""
    wait, patch = read_preference(request), await read(request, VolumePatch, PATCH)
    volume = await _unchanged(request)
    seen = seen_revision(request, volume.revision)
    changed = await services(request).volumes.change(volume.id, patch, if_revision=seen, wait_s=wait.wait_s)
    headers = {"ETag": _tag(changed), **wait.headers}
    return web.json_response(_shown(changed), status=200 if changed.is_decided else 202, headers=headers)


async def delete(request: web.Request) -> web.Response:
    """DELETE persistent-volumes/{id}: 200 that says where kept data are, 204 if they are gone, 202 while the work goes on."""
    wait, volume = read_preference(request), await _unchanged(request)
    seen = seen_revision(request, volume.revision)
    removed = await services(request).volumes.delete(volume.id, if_revision=seen, wait_s=wait.wait_s)
    if removed.is_gone and removed.data == "deleted":
        return web.Response(status=204, headers=wait.headers)
    body = removed.model_dump(mode="json")
    return web.json_response(body, status=200 if removed.is_gone else 202, headers=wait.headers)


async def _unchanged(request: web.Request) -> PersistentVolume:
    volume = await _volume(request)
    check_unchanged(request, _tag(volume), volume.updated_at)
    return volume


async def _volume(request: web.Request) -> PersistentVolume:
    return await services(request).volumes.get(request.match_info["id"])


def _tag(volume: PersistentVolume) -> str:
    # The phase is read from the region, so it changes without a write of the document.
    return entity_tag(_VARIANT, volume, volume.phase, volume.phase_detail, *suspension_tag(volume.suspended))


def _shown(volume: PersistentVolume) -> JsonObject:
    return volume.model_dump(mode="json", exclude={"revision", "is_decided", "vim_id", "refusal"}, exclude_none=True)


def routes() -> Iterator[Route]:
    """Yield the routes of persistent volumes."""
    tag = "Persistent volumes"
    under_way = Answer("Accepted: the work goes on", PersistentVolume, has_location=True, has_etag=True)
    made = {
        201: Answer("The new volume", PersistentVolume, has_location=True, has_etag=True),
        200: Answer("The volume of this name and spec", PersistentVolume, has_etag=True),
        202: under_way,
    }
    shown = {200: Answer("The volume", PersistentVolume, has_etag=True)}
    changed = {**shown, 202: Answer("Accepted: the work goes on", PersistentVolume, has_etag=True)}
    deleted = {
        200: Answer("It is gone, and its data are kept", RemovedVolume),
        202: Answer("Accepted: the work goes on", RemovedVolume),
        204: Answer("It is gone, and its data too"),
    }
    wrong = {422: "An attribute is not as expected, or contradicts another one or the region"}
    taken = {409: "A volume of this name and another spec exists, or is being removed"}
    used = {409: "VNFs use it"}
    page = page_of(PersistentVolume)
    refused = {**wrong, **taken}
    yield Route(tag, "POST", _MANY, create, "Create a volume", made, VolumeRequest, refusals=refused)
    yield Route(tag, "GET", _MANY, list_all, "List volumes", page, query=(*_FILTERS, *PARAMETERS))
    yield Route(tag, "GET", _ONE, show, "Show a volume", shown)
    yield Route(
        tag,
        "PATCH",
        _ONE,
        change,
        "Let a volume grow, or change its labels",
        changed,
        VolumePatch,
        PATCH,
        conditions=True,
        refusals={**wrong, 409: "The region is suspended, or it is being removed"},
    )
    yield Route(tag, "DELETE", _ONE, delete, "Delete a volume", deleted, conditions=True, refusals=used)
