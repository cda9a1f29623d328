"""The internal HTTP API: what the gateway and the other services ask (libs/clients ports Vims and VimDirectory)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.internal import internal_app
from kubevnfm_secrets import KeyRing, sealing

from kubevnfm_vim_registry.registry import Registry


def make_app(registry: Registry, ring: KeyRing, *, token: str) -> web.Application:
    """Return the application."""
    routes = web.RouteTableDef()

    @routes.post("/internal/v1/vims")
    async def create(request: web.Request) -> web.Response:
        return web.json_response((await registry.create(await _body(request))).view(), status=201)

    @routes.get("/internal/v1/vims")
    async def find(request: web.Request) -> web.Response:
        found = await registry.find({name: request.query.getall(name) for name in request.query})
        return web.json_response({"vims": [vim.view() for vim in found]})

    @routes.get("/internal/v1/vims/{id}")
    async def show(request: web.Request) -> web.Response:
        return web.json_response((await registry.get(request.match_info["id"])).view())

    @routes.put("/internal/v1/vims/{id}")
    async def update(request: web.Request) -> web.Response:
        return web.json_response((await registry.update(request.match_info["id"], await _body(request))).view())

    @routes.delete("/internal/v1/vims/{id}")
    async def delete(request: web.Request) -> web.Response:
        await registry.delete(request.match_info["id"])
        return web.Response(status=204)

    @routes.get("/internal/v1/vims/{id}/connection")
    async def connection(request: web.Request) -> web.Response:
        vim = await registry.get(request.match_info["id"])
        return web.json_response(vim.connection().model_dump(mode="json", context=sealing(ring)))

    return internal_app(routes, token=token)


async def _body(request: web.Request) -> Mapping[str, Any]:
    try:
        body = await request.json()
    except ValueError as error:
        raise InvalidInput("", "a JSON object expected") from error
    if not isinstance(body, Mapping):
        raise InvalidInput("", "a JSON object expected")
    return body
