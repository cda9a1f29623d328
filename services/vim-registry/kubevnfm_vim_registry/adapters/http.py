"""The internal HTTP API for the gateway and the other services (libs/clients ports Vims, VimDirectory and CloudIdentities)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from aiohttp import web
from kubevnfm_clients.multicloud.types import revision_of
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.internal import internal_app
from kubevnfm_secrets import KeyRing, sealing

from kubevnfm_vim_registry.cloud_identities import CloudIdentities
from kubevnfm_vim_registry.domain.forms import vim_forms
from kubevnfm_vim_registry.registry import VimRegistry
from kubevnfm_vim_registry.views import VimViews


def internal_api(
    registry: VimRegistry,
    views: VimViews,
    regions: Iterable[web.AbstractRouteDef],
    identities: CloudIdentities,
    ring: KeyRing,
    *,
    rejected: Callable[[str], Awaitable[None]],
    token: str,
) -> web.Application:
    """Return the application; all its paths require the internal token.

    ``regions``: the routes of cloud regions; ``rejected``: called with the id of a VIM that rejects its access data.
    """
    routes = web.RouteTableDef()

    @routes.get("/internal/v1/vim-views")
    async def page(request: web.Request) -> web.Response:
        filters = dict(request.query)
        limit, name, after_id = int(filters.pop("limit")), filters.pop("after_name", None), filters.pop("after_id", "")
        found, following = await views.page(filters, limit=limit, after=None if name is None else (name, after_id))
        return web.json_response({"vims": [each.model_dump(mode="json") for each in found], "next_after": following})

    @routes.get("/internal/v1/vim-views/{id}")
    async def view(request: web.Request) -> web.Response:
        found = await views.one(request.match_info["id"])
        return web.json_response(text=await asyncio.to_thread(found.model_dump_json))

    @routes.get("/internal/v1/vim-forms")
    async def forms(_: web.Request) -> web.Response:
        return web.json_response(vim_forms())

    @routes.post("/internal/v1/vims")
    async def create(request: web.Request) -> web.Response:
        return web.json_response(await registry.create(await _body(request)), status=201)

    @routes.get("/internal/v1/vims")
    async def find(request: web.Request) -> web.Response:
        found = await registry.list({name: request.query.getall(name) for name in request.query})
        return web.json_response({"vims": found})

    @routes.get("/internal/v1/vims/{id}")
    async def show(request: web.Request) -> web.Response:
        return web.json_response(await registry.get(request.match_info["id"]))

    @routes.get("/internal/v1/vims/{id}/revised")
    async def revised(request: web.Request) -> web.Response:
        found = await registry.revised(request.match_info["id"])
        return web.json_response({"revision": found.revision, "record": found.record})

    @routes.put("/internal/v1/vims/{id}")
    async def update(request: web.Request) -> web.Response:
        seen = revision_of(request.query)
        return web.json_response(
            await registry.update(request.match_info["id"], await _body(request), if_revision=seen)
        )

    @routes.delete("/internal/v1/vims/{id}")
    async def delete(request: web.Request) -> web.Response:
        await registry.delete(request.match_info["id"], if_revision=revision_of(request.query))
        return web.Response(status=204)

    @routes.get("/internal/v1/vims/{id}/connection")
    async def connection(request: web.Request) -> web.Response:
        if "rejected" in request.query:
            await rejected(request.match_info["id"])
        found = await registry.connection_of(request.match_info["id"])
        return web.json_response(found.model_dump(mode="json", context=sealing(ring)))

    return internal_app([*routes, *_identity_routes(identities, ring), *regions], token=token)


def _identity_routes(identities: CloudIdentities, ring: KeyRing) -> web.RouteTableDef:
    routes = web.RouteTableDef()
    identity = "/internal/v1/vims/{id}/cloud-identities/{instance}"

    @routes.post(identity)
    async def give(request: web.Request) -> web.Response:
        present = (await _body(request)).get("present")
        if not isinstance(present, str | None):
            raise InvalidInput("present", "an id expected")
        given = await identities.give(request.match_info["id"], request.match_info["instance"], present=present)
        return web.json_response(given.model_dump(mode="json", context=sealing(ring)))

    @routes.delete(identity)
    async def take_back(request: web.Request) -> web.Response:
        deleted = await identities.take_back(request.match_info["id"], request.match_info["instance"])
        return web.json_response({"deleted": deleted})

    return routes


async def _body(request: web.Request) -> Mapping[str, object]:
    try:
        body = read_foreign(await request.read())
    except ValueError as error:
        raise InvalidInput("", "a JSON object expected") from error
    if not isinstance(body, Mapping):
        raise InvalidInput("", "a JSON object expected")
    return body
