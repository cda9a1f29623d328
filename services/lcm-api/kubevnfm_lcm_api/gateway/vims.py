"""``/v1.0/vims``, with and without ``.json``: the VIM API in the form of existing clients (api.md chapter 8).

lcm-api owns no VIM: it forwards the request to vim-registry. Errors have the form TackerError (`http.errors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import Handler
from kubevnfm_clients.ports import Vims
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.http.bodies import check_accept, check_query, read_json

VIMS: Final = web.AppKey("vims", Vims)
_FILTERS: Final = ("id", "name", "type", "is_default", "status", "tenant_id", "description")


def in_json(handler: Handler) -> Handler:
    """Return the handler for callers that accept JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        check_accept(request, "application/json")
        return await handler(request)

    return handle


async def create(request: web.Request) -> web.Response:
    """POST vims: 201 after the VIM has answered."""
    check_query(request)
    return web.json_response({"vim": await request.app[VIMS].create(await _body(request))}, status=201)


async def list_all(request: web.Request) -> web.Response:
    """GET vims: the VIMs that match the query's values; ``fields`` selects attributes."""
    filters: dict[str, list[str]] = {}
    for name in request.query:
        if name not in {*_FILTERS, "fields"}:
            raise InvalidInput(name, "unknown query parameter")
        if name != "fields":
            filters[name] = request.query.getall(name)
    found = await request.app[VIMS].list(filters)
    return web.json_response({"vims": [_selected(request, vim) for vim in found]})


async def show(request: web.Request) -> web.Response:
    """GET vims/{id}: 200; ``fields`` selects attributes."""
    for name in request.query:
        if name != "fields":
            raise InvalidInput(name, "unknown query parameter")
    return web.json_response({"vim": _selected(request, await request.app[VIMS].get(_id(request)))})


async def update(request: web.Request) -> web.Response:
    """PUT vims/{id}: 200 with the changed record."""
    check_query(request)
    return web.json_response({"vim": await request.app[VIMS].update(_id(request), await _body(request))})


async def delete(request: web.Request) -> web.Response:
    """DELETE vims/{id}: 204."""
    check_query(request)
    await request.app[VIMS].delete(_id(request))
    return web.Response(status=204)


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


def add_to(app: web.Application, vims: Vims) -> None:
    """Add the VIM API to an application."""
    app[VIMS] = vims
    collection = ("/v1.0/vims", "/v1.0/vims.json")
    one = "/v1.0/vims/{id}"
    app.add_routes(
        [
            *(web.post(path, in_json(create)) for path in collection),
            *(web.get(path, in_json(list_all)) for path in collection),
            web.get(one, in_json(show)),
            web.put(one, in_json(update)),
            web.delete(one, in_json(delete)),
        ]
    )
