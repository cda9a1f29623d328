"""``/v1.0/vims``, with and without ``.json``: the VIM API in the form of existing clients (api.md chapter 8).

lcm-api owns no VIM: it forwards the request to vim-registry. Errors have the form TackerError (`http.errors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.contents import check_empty
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.volumes import PersistentVolumes
from kubevnfm_clients.ports import RevisedVim, Vims
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.gateway import models
from kubevnfm_lcm_api.http.bodies import read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag, seen_revision
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Parameter, Route, add_routes

VIMS: Final = web.AppKey("vims", Vims)
LINKS: Final = web.AppKey("links_of_vims", VirtualLinks)
VOLUMES: Final = web.AppKey("volumes_of_vims", PersistentVolumes)
_FILTERS: Final = tuple(
    Parameter(name, "Equal to this, or to one of these", is_repeated=True)
    for name in ("id", "name", "type", "is_default", "status", "tenant_id", "description", "vnf_instance_id")
)
_FIELDS: Final = Parameter("fields", "Only these attributes", is_repeated=True)


async def create(request: web.Request) -> web.Response:
    """POST vims: 201 after the VIM has answered."""
    return web.json_response({"vim": await request.app[VIMS].create(await _body(request))}, status=201)


async def list_all(request: web.Request) -> web.Response:
    filters = {one.name: request.query.getall(one.name) for one in _FILTERS if one.name in request.query}
    found = await request.app[VIMS].list(filters)
    return web.json_response({"vims": [_selected(request, vim) for vim in found]})


async def show(request: web.Request) -> web.Response:
    """GET vims/{id}: 200 with ETag, or 304."""
    vim = await request.app[VIMS].revised(_id(request))
    return answer(request, {"vim": _selected(request, vim.record)}, _tag(vim))


async def update(request: web.Request) -> web.Response:
    """PUT vims/{id}: 200 with the changed VIM; 412 if it is not as the caller has seen it."""
    changes, vim = await _body(request), await _unchanged(request)
    changed = await request.app[VIMS].update(vim.id, changes, if_revision=seen_revision(request, vim.revision))
    return web.json_response({"vim": changed})


async def delete(request: web.Request) -> web.Response:
    """DELETE vims/{id}: 204; 412 if it is not as the caller has seen it."""
    vims, vim = request.app[VIMS], await _unchanged(request)
    # Only clusters have links and volumes: another VIM can be deleted while infra-k8s is away.
    if vim.record.get("type") == "kubernetes":
        await check_empty(request.app[LINKS], request.app[VOLUMES], vim.id, f"VIM {vim.id}")
    await vims.delete(vim.id, if_revision=seen_revision(request, vim.revision))
    return web.Response(status=204)


async def _unchanged(request: web.Request) -> RevisedVim:
    vim = await request.app[VIMS].revised(_id(request))
    check_unchanged(request, _tag(vim), str(vim.record["updated_at"]))
    return vim


def _tag(vim: RevisedVim) -> str:
    return entity_tag("vims", vim)


async def _body(request: web.Request) -> JsonMapping:
    body = await read_json(request)
    vim = body.get("vim") if isinstance(body, Mapping) else None
    if not isinstance(vim, Mapping):
        raise InvalidInput("vim", "an object expected")
    return vim


def _id(request: web.Request) -> str:
    return request.match_info["id"].removesuffix(".json")


def _selected(request: web.Request, vim: JsonMapping) -> JsonMapping:
    wanted = request.query.getall("fields", [])
    return {name: value for name, value in vim.items() if name in wanted} if wanted else vim


def add_to(app: web.Application, vims: Vims, links: VirtualLinks, volumes: PersistentVolumes) -> None:
    """Add the VIM API to an application; a VIM that has links or volumes is not deleted."""
    app[VIMS], app[LINKS], app[VOLUMES] = vims, links, volumes
    tag, one = "VIMs", "/v1.0/vims/{id}"
    refused = {409: "There is a VIM of that name, or another default", 422: "The VIM cannot be used"}
    used = {**refused, 409: f"{refused[409]}; or instances use it"}
    made, changed = Answer("Registered", models.VimCreated), Answer("The VIM as it is now", models.VimCreated)
    found, shown = Answer("Those that fit", models.VimsAnswer), Answer("The VIM", models.VimAnswer, has_etag=True)
    for many in ("/v1.0/vims", "/v1.0/vims.json"):
        register = Route(tag, "POST", many, create, "Register a VIM", {201: made}, models.CreateVim, refusals=refused)
        listed = Route(tag, "GET", many, list_all, "List VIMs", {200: found}, query=(*_FILTERS, _FIELDS))
        add_routes(app, [register, listed])
    in_use = {409: "Instances use it, or it has virtual links or persistent volumes"}
    add_routes(
        app,
        [
            Route(tag, "GET", one, show, "Show a VIM", {200: shown}, query=(_FIELDS,)),
            Route(
                tag,
                "PUT",
                one,
                update,
                "Change a VIM",
                {200: changed},
                models.UpdateVim,
                conditions=True,
                refusals=used,
            ),
            Route(tag, "DELETE", one, delete, "Delete a VIM", DELETED, conditions=True, refusals=in_use),
        ],
    )
